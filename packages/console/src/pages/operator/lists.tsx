import type { ListEntry } from '@assay/contract/admin'
import { useState } from 'react'
import { useChange, useRead } from '../../api/hooks.ts'
import { useForm } from '../../api/use-form.ts'
import { Badge } from '../../ui/badge.tsx'
import { Button } from '../../ui/button.tsx'
import { Confirm } from '../../ui/confirm.tsx'
import { FormDialog } from '../../ui/dialog.tsx'
import { ExportLinks } from '../../ui/export-links.tsx'
import { EndDateField, SelectField, TextField } from '../../ui/field.tsx'
import { LongText } from '../../ui/long-text.tsx'
import { Page } from '../../ui/page.tsx'
import { Empty, Loaded } from '../../ui/states.tsx'
import { Table } from '../../ui/table.tsx'
import { Age, Day } from '../../ui/time.tsx'

export function ListsPage() {
  const entries = useRead('listEntries', {}, { liveMs: 10_000 })
  const [isAdding, setAdding] = useState(false)
  const add = (
    <Button variant="primary" onClick={() => setAdding(true)}>
      New entry
    </Button>
  )
  return (
    <Page
      title="Allow and block"
      about="Entries override the engines. An allow entry turns a threat into clean; it does not change errors."
      actions={
        <>
          <ExportLinks list="listEntries" />
          {add}
        </>
      }
    >
      <Loaded query={entries}>
        {(rows) =>
          rows.length === 0 ? (
            <Empty title="No entries">
              Allow a false positive by its hash or signal, or block a file that the engines do not detect.
            </Empty>
          ) : (
            <Entries rows={rows} />
          )
        }
      </Loaded>
      {isAdding && <AddEntry onClose={() => setAdding(false)} />}
    </Page>
  )
}

function Entries({ rows }: { rows: ListEntry[] }) {
  const [toRemove, setToRemove] = useState<ListEntry>()
  const remove = useChange('removeListEntry', { onDone: () => setToRemove(undefined) })
  return (
    <>
      <Table
        caption="Allow and block lists"
        rows={rows}
        keyOf={({ id }) => id}
        columns={[
          { title: 'List', cell: ({ list }) => <ListBadge list={list} /> },
          { title: 'Value', cell: ({ value }) => <LongText isCode>{value}</LongText> },
          { title: 'Reason', cell: ({ reason }) => <LongText>{reason}</LongText> },
          {
            title: 'Created by',
            isExtra: true,
            cell: ({ created_by, created_at }) => (
              <LongText>
                {created_by},{' '}
                <span className="text-faint">
                  <Age at={created_at} />
                </span>
              </LongText>
            ),
          },
          {
            title: 'Expires',
            cell: ({ expires_at }) => <Day at={expires_at} otherwise="Never" />,
          },
          {
            title: 'Actions',
            isActions: true,
            cell: (entry) => (
              <Button isSmall aria-label={`Remove ${entry.value}`} onClick={() => setToRemove(entry)}>
                Remove
              </Button>
            ),
          },
        ]}
      />
      {toRemove !== undefined && (
        <Confirm
          title={toRemove.list === 'allow' ? 'Remove the allow entry' : 'Remove the block entry'}
          action="Remove"
          mutation={remove}
          onConfirm={() => remove.mutate({ params: { id: toRemove.id } })}
          onClose={() => setToRemove(undefined)}
        >
          <p>The engines decide again about this content.</p>
          <code className="mt-3 block rounded-lg bg-sunk px-3 py-2 font-mono text-xs text-ink">{toRemove.value}</code>
        </Confirm>
      )}
    </>
  )
}

const ListBadge = ({ list }: Pick<ListEntry, 'list'>) => (
  <Badge tone={list === 'allow' ? 'clean' : 'threat'}>
    <span aria-hidden="true">{list === 'allow' ? '✓' : '✕'}</span>
    {list}
  </Badge>
)

function AddEntry({ onClose }: { onClose: () => void }) {
  const form = useForm('addListEntry', { list: 'allow', matches: 'sha256', value: '', reason: '' }, { onDone: onClose })
  const isHash = form.values.matches === 'sha256'
  return (
    <FormDialog title="New entry" action="Add" form={form} onClose={onClose}>
      <div className="grid gap-4 sm:grid-cols-2">
        <SelectField
          label="List"
          value={form.values.list}
          options={[
            ['allow', 'Allow'],
            ['block', 'Block'],
          ]}
          onText={(list) => form.set({ list: list as 'allow' | 'block' })}
        />
        <SelectField
          label="Match by"
          value={form.values.matches}
          options={[
            ['sha256', 'SHA-256 of the file'],
            ['signal', 'Signal of the result'],
          ]}
          onText={(matches) => form.set({ matches: matches as 'sha256' | 'signal' })}
        />
      </div>
      <TextField
        label={isHash ? 'SHA-256' : 'Signal'}
        hint={isHash ? '64 hexadecimal digits, as shown in results.' : 'For example Virus:Eicar-Test-Signature.'}
        autoComplete="off"
        spellCheck={false}
        {...form.text('value')}
        onText={(value) => form.set({ value: value.trim() })}
      />
      <TextField label="Reason" hint="Shown in this list." autoComplete="off" {...form.text('reason')} />
      <EndDateField label="Expires" hint="Leave empty for no expiry." {...form.endDate('expires_at')} />
    </FormDialog>
  )
}

import { useState } from 'react'
import { useChange, useRead } from '../../api/hooks.ts'
import { useForm } from '../../api/use-form.ts'
import { Badge } from '../../ui/badge.tsx'
import { Button } from '../../ui/button.tsx'
import { Actions, Dialog } from '../../ui/dialog.tsx'
import { Empty, Failure, Reading } from '../../ui/feedback.tsx'
import { SelectField, TextField } from '../../ui/field.tsx'
import { toAge, toDay } from '../../ui/format.ts'
import { Page } from '../../ui/page.tsx'
import { Table } from '../../ui/table.tsx'

export function ListsPage() {
  const entries = useRead('listEntries', {}, { liveMs: 10_000 })
  const remove = useChange('removeListEntry')
  const [isAdding, setAdding] = useState(false)
  const add = (
    <Button look="main" onClick={() => setAdding(true)}>
      New entry
    </Button>
  )
  return (
    <Page
      title="Allow and block"
      about="What you say of a file or a finding has the last word. Only a threat can be allowed: what was not scanned is never clean."
      actions={add}
    >
      <Failure error={remove.error} />
      <Reading of={entries}>
        {(rows) =>
          rows.length === 0 ? (
            <Empty title="No entries">
              Allow a false positive by its hash or its signal, or block a file that the engines do not know.
            </Empty>
          ) : (
            <Table
              caption="Allow and block lists"
              rows={rows}
              keyOf={({ id }) => id}
              columns={[
                {
                  title: 'List',
                  cell: ({ list }) => <Badge tone={list === 'allow' ? 'clean' : 'threat'}>{list}</Badge>,
                },
                { title: 'What', cell: ({ value }) => <code className="font-mono text-xs break-all">{value}</code> },
                { title: 'Why', cell: ({ reason }) => reason },
                {
                  title: 'By',
                  isExtra: true,
                  cell: ({ created_by, created_at }) => `${created_by}, ${toAge(created_at)}`,
                },
                { title: 'Until', cell: ({ expires_at }) => (expires_at === null ? 'for good' : toDay(expires_at)) },
                {
                  title: 'Actions',
                  cell: ({ id, value }) => (
                    <Button
                      look="quiet"
                      aria-label={`Remove ${value}`}
                      onClick={() => remove.mutate({ params: { id } })}
                    >
                      Remove
                    </Button>
                  ),
                },
              ]}
            />
          )
        }
      </Reading>
      {isAdding && <AddEntry onClose={() => setAdding(false)} />}
    </Page>
  )
}

function AddEntry({ onClose }: { onClose: () => void }) {
  const form = useForm('addListEntry', { list: 'allow', matches: 'sha256', value: '', reason: '' }, { onDone: onClose })
  const isHash = form.values.matches === 'sha256'
  return (
    <Dialog title="New entry" onClose={onClose}>
      <form onSubmit={form.submit} className="flex flex-col gap-4" noValidate>
        <SelectField
          label="List"
          value={form.values.list}
          options={[
            ['allow', 'Allow: not a threat'],
            ['block', 'Block: a threat'],
          ]}
          onText={(list) => form.set({ list: list as 'allow' | 'block' })}
        />
        <SelectField
          label="By"
          value={form.values.matches}
          options={[
            ['sha256', 'The SHA-256 of the file'],
            ['signal', 'The signal of the result'],
          ]}
          onText={(matches) => form.set({ matches: matches as 'sha256' | 'signal' })}
        />
        <TextField
          label={isHash ? 'SHA-256' : 'Signal'}
          hint={isHash ? '64 hex digits.' : 'Such as Virus:Eicar-Test-Signature.'}
          value={form.values.value}
          error={form.errorOf('value')}
          onText={(value) => form.set({ value })}
        />
        <TextField
          label="Why"
          hint="It is shown in results."
          value={form.values.reason}
          error={form.errorOf('reason')}
          onText={(reason) => form.set({ reason })}
        />
        <TextField
          label="Until"
          hint="Empty: for good."
          type="date"
          error={form.errorOf('expires_at')}
          onText={(day) => form.set({ expires_at: day === '' ? null : `${day}T23:59:59Z` })}
        />
        <Failure error={form.error} />
        <Actions>
          <Button onClick={onClose}>Cancel</Button>
          <Button type="submit" look="main" isBusy={form.isBusy}>
            Add
          </Button>
        </Actions>
      </form>
    </Dialog>
  )
}

import type { ListEntry } from '@assay/contract/admin'
import { useState } from 'react'
import { useChange, useRead } from '../../api/hooks.ts'
import { Badge } from '../../ui/badge.tsx'
import { Button } from '../../ui/button.tsx'
import { Confirm } from '../../ui/confirm.tsx'
import { Empty, Reading } from '../../ui/feedback.tsx'
import { toAge, toDay } from '../../ui/format.ts'
import { Long } from '../../ui/long.tsx'
import { Page } from '../../ui/page.tsx'
import { Table } from '../../ui/table.tsx'
import { AddEntry } from './add-entry.tsx'

export function ListsPage() {
  const entries = useRead('listEntries', {}, { liveMs: 10_000 })
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
      <Reading of={entries}>
        {(rows) =>
          rows.length === 0 ? (
            <Empty title="No entries">
              Allow a false positive by its hash or its signal, or block a file that the engines do not know.
            </Empty>
          ) : (
            <Entries rows={rows} />
          )
        }
      </Reading>
      {isAdding && <AddEntry onClose={() => setAdding(false)} />}
    </Page>
  )
}

function Entries({ rows }: { rows: ListEntry[] }) {
  const [doomed, setDoomed] = useState<ListEntry>()
  const remove = useChange('removeListEntry', { onDone: () => setDoomed(undefined) })
  return (
    <>
      <Table
        caption="Allow and block lists"
        rows={rows}
        keyOf={({ id }) => id}
        columns={[
          { title: 'List', cell: ({ list }) => <ListBadge list={list} /> },
          { title: 'What', cell: ({ value }) => <Long isCode>{value}</Long> },
          { title: 'Why', cell: ({ reason }) => <Long>{reason}</Long> },
          {
            title: 'By',
            isExtra: true,
            cell: ({ created_by, created_at }) => (
              <Long>
                {created_by}, <span className="whitespace-nowrap text-faint">{toAge(created_at)}</span>
              </Long>
            ),
          },
          {
            title: 'Until',
            cell: ({ expires_at }) => (
              <span className="whitespace-nowrap">{expires_at === null ? 'for good' : toDay(expires_at)}</span>
            ),
          },
          {
            title: 'Actions',
            isActions: true,
            cell: (entry) => (
              <Button isSmall aria-label={`Remove ${entry.value}`} onClick={() => setDoomed(entry)}>
                Remove
              </Button>
            ),
          },
        ]}
      />
      {doomed !== undefined && (
        <Confirm
          title={doomed.list === 'allow' ? 'No longer allow this' : 'No longer block this'}
          action="Remove"
          of={remove}
          onConfirm={() => remove.mutate({ params: { id: doomed.id } })}
          onClose={() => setDoomed(undefined)}
        >
          <p>From now on the engines decide again.</p>
          <code className="mt-3 block rounded-lg bg-sunk px-3 py-2 font-mono text-xs text-ink">{doomed.value}</code>
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

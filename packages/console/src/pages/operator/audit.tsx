import { useNavigate, useSearch } from '@tanstack/react-router'
import { useRead } from '../../api/hooks.ts'
import { Empty, Reading } from '../../ui/feedback.tsx'
import { TextField } from '../../ui/field.tsx'
import { toDateTime } from '../../ui/format.ts'
import { Page } from '../../ui/page.tsx'
import { More, Table } from '../../ui/table.tsx'

export function AuditPage() {
  const { action, cursor } = useSearch({ strict: false }) as { action?: string; cursor?: string }
  const navigate = useNavigate()
  const query = { ...(action && { action }), ...(cursor && { cursor }) }
  const log = useRead('listAudit', { query })
  const go = (search: Record<string, string | undefined>) => void navigate({ to: '.', search })
  return (
    <Page title="Audit log" about="Who changed what, and from where. Nothing is ever taken out of it.">
      <div className="max-w-72">
        <TextField
          label="What begins with"
          placeholder="key."
          defaultValue={action ?? ''}
          onText={(text) => go({ action: text === '' ? undefined : text })}
        />
      </div>
      <Reading of={log}>
        {({ items, next }) =>
          items.length === 0 ? (
            <Empty title="Nothing of this kind yet" />
          ) : (
            <>
              <Table
                caption="Audit log"
                rows={items}
                keyOf={({ id }) => id}
                columns={[
                  { title: 'When', cell: ({ at }) => <span className="whitespace-nowrap">{toDateTime(at)}</span> },
                  { title: 'Who', cell: ({ actor }) => <span className="break-all">{actor}</span> },
                  { title: 'What', cell: (row) => <code className="font-mono text-xs">{row.action}</code> },
                  {
                    title: 'On',
                    cell: ({ target, account_name }) => (
                      <span className="break-all">{[target, account_name].filter(Boolean).join(' · ') || '–'}</span>
                    ),
                  },
                  {
                    title: 'Detail',
                    isExtra: true,
                    cell: ({ detail }) => <span className="break-all text-soft">{detail ?? ''}</span>,
                  },
                  { title: 'From', isExtra: true, cell: ({ address }) => address ?? '' },
                ]}
              />
              <More next={next} onMore={(before) => go({ ...(action && { action }), cursor: before })} />
            </>
          )
        }
      </Reading>
    </Page>
  )
}

import { useRead } from '../../api/hooks.ts'
import { Empty, Reading } from '../../ui/feedback.tsx'
import { toDateTime, toNumber } from '../../ui/format.ts'
import { Table } from '../../ui/table.tsx'
import { Section } from './account-forms.tsx'

/** What became of the credits: the newest entries. */
export function AccountLedger({ accountId }: { accountId: string }) {
  const ledger = useRead('listLedger', { params: { id: accountId } }, { liveMs: 10_000 })
  return (
    <Section title="Ledger">
      <Reading of={ledger}>
        {(rows) =>
          rows.length === 0 ? (
            <Empty title="No entries yet">Every scan, refund and grant of this account stands here.</Empty>
          ) : (
            <Table
              caption="Ledger"
              rows={rows.slice(0, 50)}
              keyOf={({ id }) => id}
              columns={[
                { title: 'When', cell: ({ at }) => <span className="whitespace-nowrap">{toDateTime(at)}</span> },
                {
                  title: 'What',
                  cell: ({ kind, note }) => (
                    <span className="block [overflow-wrap:anywhere]">{note === null ? kind : `${kind}: ${note}`}</span>
                  ),
                },
                {
                  title: 'Credits',
                  isNumber: true,
                  cell: ({ amount }) => (amount > 0 ? `+${toNumber(amount)}` : toNumber(amount)),
                },
                { title: 'Left', isNumber: true, cell: ({ balance }) => toNumber(balance) },
              ]}
            />
          )
        }
      </Reading>
    </Section>
  )
}

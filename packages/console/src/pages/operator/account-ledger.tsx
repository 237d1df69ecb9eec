import { useRead } from '../../api/hooks.ts'
import { toDateTime, toNumber } from '../../ui/format.ts'
import { Empty, Loaded } from '../../ui/states.tsx'
import { Table } from '../../ui/table.tsx'
import { Section } from './account-forms.tsx'

/** The newest ledger entries of an account. */
export function AccountLedger({ accountId }: { accountId: string }) {
  const ledger = useRead('listLedger', { params: { id: accountId } }, { liveMs: 10_000 })
  return (
    <Section title="Ledger">
      <Loaded query={ledger}>
        {(rows) =>
          rows.length === 0 ? (
            <Empty title="No entries yet">Scans, refunds and grants of this account appear here.</Empty>
          ) : (
            <Table
              caption="Ledger"
              rows={rows.slice(0, 50)}
              keyOf={({ id }) => id}
              columns={[
                { title: 'Time', cell: ({ at }) => <span className="whitespace-nowrap">{toDateTime(at)}</span> },
                {
                  title: 'Entry',
                  cell: ({ kind, note }) => (
                    <span className="block [overflow-wrap:anywhere]">{note === null ? kind : `${kind}: ${note}`}</span>
                  ),
                },
                {
                  title: 'Credits',
                  isNumber: true,
                  cell: ({ amount }) => (amount > 0 ? `+${toNumber(amount)}` : toNumber(amount)),
                },
                { title: 'Balance', isNumber: true, cell: ({ balance }) => toNumber(balance) },
              ]}
            />
          )
        }
      </Loaded>
    </Section>
  )
}

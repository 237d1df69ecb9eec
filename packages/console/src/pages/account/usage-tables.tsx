import type { Usage } from '@assay/contract/admin'
import { Empty } from '../../ui/feedback.tsx'
import { toNumber } from '../../ui/format.ts'
import { Table } from '../../ui/table.tsx'
import { type Counts, toTotal } from './usage-sums.ts'

export function UsageTable({
  caption,
  title,
  rows,
}: {
  caption: string
  title: string
  rows: (Counts & { name: string })[]
}) {
  return (
    <section className="flex min-w-0 flex-col gap-3">
      <h2 className="font-semibold">{caption}</h2>
      {rows.length === 0 ? (
        <Empty title="No scans" />
      ) : (
        <Table
          caption={caption}
          rows={rows}
          keyOf={({ name }) => name}
          columns={[
            { title, cell: ({ name }) => <span className="block max-w-48 truncate font-medium">{name}</span> },
            { title: 'Scans', cell: (row) => toNumber(toTotal(row)), isNumber: true },
            { title: 'Clean', cell: ({ clean }) => toNumber(clean), isNumber: true, isExtra: true },
            { title: 'Threats', cell: ({ threat }) => toNumber(threat), isNumber: true },
            { title: 'Errors', cell: ({ error }) => toNumber(error), isNumber: true },
          ]}
        />
      )}
    </section>
  )
}

const reasons: Record<number, string> = {
  400: 'The request was malformed',
  401: 'The key is not accepted',
  403: 'No credits were left',
  404: 'No such path',
  408: 'The request came too slowly',
  413: 'The request was too large',
  415: 'Sent in a form that is not understood',
  422: 'Something in the request is not valid',
  429: 'More requests than the plan allows',
  500: 'An engine could not answer',
  503: 'The service was overloaded',
}

export function RefusalTable({ refusals }: Pick<Usage, 'refusals'>) {
  const sums = new Map<number, { count: number; last: string }>()
  for (const { status, count, day } of refusals) {
    const before = sums.get(status)
    sums.set(status, { count: (before?.count ?? 0) + count, last: day })
  }
  return (
    <section className="flex flex-col gap-3">
      <h2 className="font-semibold">Refused requests</h2>
      {sums.size === 0 ? (
        <Empty title="Nothing was refused">Requests that the service says no to are counted here, by status.</Empty>
      ) : (
        <Table
          caption="Refused requests"
          rows={[...sums].sort(([, a], [, b]) => b.count - a.count)}
          keyOf={([status]) => String(status)}
          columns={[
            { title: 'Status', cell: ([status]) => <span className="font-medium tabular-nums">{status}</span> },
            { title: 'Meaning', cell: ([status]) => reasons[status] ?? 'Refused' },
            { title: 'Requests', cell: ([, { count }]) => toNumber(count), isNumber: true },
            { title: 'Last on', cell: ([, { last }]) => last, isExtra: true },
          ]}
        />
      )}
    </section>
  )
}

import type { Usage } from '@assay/contract/admin'
import { toNumber } from '../../ui/format.ts'
import { Empty } from '../../ui/states.tsx'
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
  400: 'Malformed request',
  401: 'API key not accepted',
  403: 'No credits left',
  404: 'No such path',
  408: 'Request too slow',
  413: 'Request too large',
  415: 'Unsupported media type',
  422: 'Invalid field',
  429: 'Rate limit reached',
  500: 'Engine unavailable',
  503: 'Service overloaded',
}

export function RejectedTable({ rejections }: { rejections: Usage['refusals'] }) {
  const sums = new Map<number, { count: number; last: string }>()
  for (const { status, count, day } of rejections) {
    const before = sums.get(status)
    sums.set(status, { count: (before?.count ?? 0) + count, last: day })
  }
  return (
    <section className="flex flex-col gap-3">
      <h2 className="font-semibold">Rejected requests</h2>
      {sums.size === 0 ? (
        <Empty title="No rejected requests">Requests that the service rejects are counted here by status.</Empty>
      ) : (
        <Table
          caption="Rejected requests"
          rows={[...sums].sort(([, a], [, b]) => b.count - a.count)}
          keyOf={([status]) => String(status)}
          columns={[
            { title: 'Status', cell: ([status]) => <span className="font-medium tabular-nums">{status}</span> },
            { title: 'Meaning', cell: ([status]) => reasons[status] ?? 'Rejected' },
            { title: 'Requests', cell: ([, { count }]) => toNumber(count), isNumber: true },
            { title: 'Last on', cell: ([, { last }]) => last, isExtra: true },
          ]}
        />
      )}
    </section>
  )
}

import type { Usage } from '@assay/contract/admin'

type Row = Usage['days'][number]
export type Counts = Pick<Row, 'clean' | 'threat' | 'error' | 'pending'>

const dayMs = 86_400_000
const none: Counts = { clean: 0, threat: 0, error: 0, pending: 0 }

export const toTotal = ({ clean, threat, error, pending }: Counts) => clean + threat + error + pending

/** Sums the days by the name that `toName` returns, the largest sum first. */
export function sumDays(days: Row[], toName: (row: Row) => string): (Counts & { name: string })[] {
  const sums = new Map<string, Counts>()
  for (const row of days) sums.set(toName(row), add(sums.get(toName(row)) ?? none, row))
  const named = [...sums].map(([name, counts]) => ({ name, ...counts }))
  return named.sort((a, b) => toTotal(b) - toTotal(a))
}

/** The last 30 days, including days without scans. */
export function toDays(rows: Row[], now: Date): (Counts & { day: string })[] {
  return Array.from({ length: 30 }, (_, n) => {
    const day = new Date(now.getTime() - (29 - n) * dayMs).toISOString().slice(0, 10)
    return { day, ...rows.filter((row) => row.day === day).reduce(add, none) }
  })
}

const add = (sum: Counts, more: Counts): Counts => ({
  clean: sum.clean + more.clean,
  threat: sum.threat + more.threat,
  error: sum.error + more.error,
  pending: sum.pending + more.pending,
})

/** `from` is missing where it begins with the first id of all, and in the default one, which has no `to` either. */
export type Partition = { name: string; from: Date | undefined; to: Date | undefined; about: number }
type Span = { from: Date; to: Date }

const dayMs = 86_400_000
/** How many partitions results are spread over: every statement that looks for a result locks each of them. */
const partitions = 32
const spansAhead = 2

/** The lowest id of a scan at that time. */
export function toScanIdAt(time: Date): string {
  const hex = time.getTime().toString(16).padStart(12, '0')
  return `${hex.slice(0, 8)}-${hex.slice(8)}-0000-0000-000000000000`
}

const toTime = (id: string | undefined) =>
  id === undefined ? undefined : new Date(Number.parseInt(id.replaceAll('-', '').slice(0, 12), 16))

/** From how the database describes it: `FOR VALUES FROM ('...') TO ('...')`, `MINVALUE` without quotes, or `DEFAULT`. */
export function toPartition(row: { name: string; bound: string; about: number }): Partition {
  const [, from, to] = /FROM \((?:'([^']+)'|MINVALUE)\) TO \('([^']+)'\)/.exec(row.bound) ?? []
  return { name: row.name, from: toTime(from), to: toTime(to), about: row.about }
}

/** What no partition is there for, from today on and ahead, in pieces of a day, or of more when results are kept long. */
export function findGaps(now: Date, resultDays: number, existing: Partition[]): Span[] {
  const grainMs = Math.ceil(resultDays / partitions) * dayMs
  const last = now.getTime() + spansAhead * grainMs
  const taken = existing.flatMap(({ from, to }) =>
    to === undefined ? [] : [{ from: from?.getTime() ?? 0, to: to.getTime() }],
  )
  const gaps: Span[] = []
  for (let at = Math.floor(now.getTime() / dayMs) * dayMs; at <= last; ) {
    const here = taken.find(({ from, to }) => from <= at && at < to)
    if (here !== undefined) {
      at = here.to
      continue
    }
    // Always between the same days, whichever node makes it.
    const end = (Math.floor(at / grainMs) + 1) * grainMs
    const to = Math.min(end, ...taken.map(({ from }) => from).filter((from) => from > at))
    gaps.push({ from: new Date(at), to: new Date(to) })
    at = to
  }
  return gaps
}

import { waitAtMost } from '../../runtime/clock.ts'
import type { Link } from '../../runtime/link.ts'
import { addMetrics, keepTotals, type MetricValues } from '../../runtime/metrics.ts'

/** How long a scrape waits for a process; then its last values are used. */
const answerMs = 2000

/**
 * Reads the metrics of the HTTP processes. Counts of a process that has ended are kept, as far as they were read, so
 * that totals do not fall.
 */
export function makeProcessMetrics() {
  const latest = new Map<Link, MetricValues>()
  let ended: MetricValues = []

  let keeping = Promise.resolve()

  async function readOne(link: Link) {
    const reading = link.call('metrics').then(
      ({ value }) => {
        if (latest.has(link)) latest.set(link, value as MetricValues)
      },
      () => {},
    )
    await waitAtMost(reading, answerMs)
  }

  /** In one turn, values leave those of running processes and join those of ended ones: no scrape has them twice. */
  async function keep(link: Link) {
    const sum = await addMetrics([ended, keepTotals(latest.get(link) ?? [])])
    latest.delete(link)
    ended = sum
  }

  return {
    add(link: Link) {
      latest.set(link, [])
      void link.closed.then(() => {
        keeping = keeping.then(() => keep(link))
      })
    },
    async read(): Promise<MetricValues[]> {
      await Promise.all([...latest.keys()].map(readOne))
      return [...latest.values(), ended]
    },
  }
}

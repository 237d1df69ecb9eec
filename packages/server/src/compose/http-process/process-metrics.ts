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

  async function readOne(link: Link): Promise<MetricValues> {
    const reading = link.call('metrics').then(
      ({ value }) => {
        if (latest.has(link)) latest.set(link, value as MetricValues)
      },
      () => {},
    )
    await waitAtMost(reading, answerMs)
    return latest.get(link) ?? []
  }

  return {
    add(link: Link) {
      latest.set(link, [])
      void link.closed.then(async () => {
        const values = latest.get(link) ?? []
        latest.delete(link)
        ended = await addMetrics([ended, keepTotals(values)])
      })
    },
    read: async (): Promise<MetricValues[]> => [...(await Promise.all([...latest.keys()].map(readOne))), ended],
  }
}

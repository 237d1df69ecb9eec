import type { Registry } from 'prom-client'

/** Upper bounds of the histogram of requests, in seconds. */
export const requestSeconds = [0.002, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 10, 60]

/** Totals since the start of the service, as the metrics of its processes count them, and their memory now. */
export type ActivityTotals = {
  /** Completed scans by kind and status. */
  scans: Map<string, number>
  /** Seconds that the engines took, by kind. */
  engineSeconds: Map<string, number>
  /** Synchronous scans by the time of their response: one count for each bound of the histogram, and one beyond. */
  latency: number[]
  /** Attempts to deliver webhooks by outcome. */
  deliveries: Map<string, number>
  memoryBytes: number
}

/** Joins the labels of a total to its key in the maps of `ActivityTotals`. */
export const toTotalKey = (...labels: string[]) => labels.join(' ')

/** Reads from the metrics the totals that the charts of the console show. */
export async function readActivityTotals(registry: Registry): Promise<ActivityTotals> {
  const [scans, engines, requests, attempts, memory] = await Promise.all([
    readValues(registry, 'assay_scans_total'),
    readValues(registry, 'assay_scan_duration_seconds'),
    readValues(registry, 'assay_http_request_duration_seconds'),
    readValues(registry, 'assay_webhook_attempts_total'),
    readValues(registry, 'process_resident_memory_bytes'),
  ])
  return {
    scans: sumBy(scans, ({ labels }) => toTotalKey(labels.kind ?? '', labels.status ?? '')),
    engineSeconds: sumBy(
      engines.filter(({ name }) => name?.endsWith('_sum')),
      ({ labels }) => labels.kind ?? '',
    ),
    latency: toHistogram(
      requests.filter(
        ({ name, labels }) => name?.endsWith('_bucket') && /\.Scan(File|Url)$/.test(labels.operation ?? ''),
      ),
    ),
    deliveries: sumBy(attempts, ({ labels }) => labels.outcome ?? ''),
    memoryBytes: memory.reduce((sum, { value }) => sum + value, 0),
  }
}

type Value = { name: string | undefined; labels: Record<string, string>; value: number }

async function readValues(registry: Registry, name: string): Promise<Value[]> {
  const metric = registry.getSingleMetric(name)
  if (metric === undefined) return []
  const { values } = (await metric.get()) as {
    values: { metricName?: string; labels: Record<string, string>; value: number }[]
  }
  return values.map(({ metricName, labels, value }) => ({ name: metricName, labels, value }))
}

function sumBy(values: Value[], toKey: (value: Value) => string): Map<string, number> {
  const sums = new Map<string, number>()
  for (const value of values) sums.set(toKey(value), (sums.get(toKey(value)) ?? 0) + value.value)
  return sums
}

/** Prometheus counts everything up to each bound; the histogram counts what lies between two. */
function toHistogram(buckets: Value[]): number[] {
  const sums = sumBy(buckets, ({ labels }) => String(labels.le))
  const sorted = [...sums].map(([le, count]): [number, number] => [le === '+Inf' ? Infinity : Number(le), count])
  sorted.sort(([a], [b]) => a - b)
  return sorted.map(([, count], n) => count - (sorted[n - 1]?.[1] ?? 0))
}

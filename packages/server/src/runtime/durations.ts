import type { Histogram, MetricObjectWithValues, MetricValueWithName, Registry } from 'prom-client'

type LabelNames = readonly [first: string, second?: string]
type Series = { labels: Record<string, string>; counts: number[]; sum: number; count: number }

/**
 * Counts durations by one or two labels, and registers them as a histogram. The histogram of the library validates and
 * hashes the labels of each observation, which took 3 % of the service's time with small files.
 */
export function makeDurations(
  registry: Registry,
  metric: { name: string; help: string; labelNames: LabelNames; bounds: readonly number[] },
) {
  const { name, help, labelNames, bounds } = metric
  const seriesByLabels = new Map<string, Map<string | number, Series>>()

  function openSeries(first: string, second: string | number): Series {
    const ofFirst = seriesByLabels.get(first) ?? new Map<string | number, Series>()
    seriesByLabels.set(first, ofFirst)
    const [firstName, secondName] = labelNames
    const labels = { [firstName]: first, ...(secondName === undefined ? {} : { [secondName]: String(second) }) }
    const series = { labels, counts: bounds.map(() => 0), sum: 0, count: 0 }
    ofFirst.set(second, series)
    return series
  }

  function listValues({ labels, counts, sum, count }: Series): MetricValueWithName<string>[] {
    let below = 0
    const buckets = bounds.map((le, at) => {
      below += counts[at] ?? 0
      return { metricName: `${name}_bucket`, labels: { le, ...labels }, value: below }
    })
    return [
      ...buckets,
      { metricName: `${name}_bucket`, labels: { le: '+Inf', ...labels }, value: count },
      { metricName: `${name}_sum`, labels: { ...labels }, value: sum },
      { metricName: `${name}_count`, labels: { ...labels }, value: count },
    ]
  }

  const described = { name, help, type: 'histogram', aggregator: 'sum' }
  const get = async () => ({
    ...described,
    values: [...seriesByLabels.values()].flatMap((ofFirst) => [...ofFirst.values()].flatMap(listValues)),
  })
  // The registry calls `get` alone. Its type is that of the library's own classes.
  registry.registerMetric({ ...described, get } as unknown as Histogram)

  return {
    observe(seconds: number, first: string, second: string | number = '') {
      // NaN or an infinite number would spoil the sum for as long as the process runs.
      if (!Number.isFinite(seconds)) throw new TypeError(`${name}: ${seconds} is not a duration`)
      const series = seriesByLabels.get(first)?.get(second) ?? openSeries(first, second)
      series.sum += seconds
      series.count++
      const at = bounds.findIndex((bound) => seconds <= bound)
      if (at !== -1) series.counts[at] = (series.counts[at] ?? 0) + 1
    },
    get: get as unknown as () => Promise<MetricObjectWithValues<MetricValueWithName<string>>>,
  }
}

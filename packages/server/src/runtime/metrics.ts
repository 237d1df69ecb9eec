import {
  AggregatorRegistry,
  Counter,
  collectDefaultMetrics,
  Gauge,
  Histogram,
  type MetricObjectWithValues,
  type MetricValue,
  Registry,
} from 'prom-client'
import { requestSeconds } from './activity-totals.ts'
import { makeDurations } from './durations.ts'
import { createServer } from './node-http.ts'

/** The metrics of a process, as JSON can hold them. */
export type MetricValues = MetricObjectWithValues<MetricValue<string>>[]

/** Adds the metrics of several processes, each by its rule: most are sums. */
export const addMetrics = (all: MetricValues[]): Promise<MetricValues> =>
  AggregatorRegistry.aggregate(all).getMetricsAsJSON()

/** Leaves out gauges, whose values end with their process. */
export const keepTotals = (values: MetricValues): MetricValues =>
  values.filter(({ type }) => ['counter', 'histogram'].includes(String(type)))

/** Pause between two checks of the event loop for its metrics. Each check wakes the processor, also of an idle service. */
const eventLoopMonitoringMs = 50

export type Metrics = ReturnType<typeof makeMetrics>

export function makeMetrics(labels: { region: string; version: string }) {
  const registry = new Registry()
  registry.setDefaultLabels({ region: labels.region })
  collectDefaultMetrics({ register: registry, eventLoopMonitoringPrecision: eventLoopMonitoringMs })
  const registers = [registry]
  const newCounter = <const Label extends string>(name: string, help: string, labelNames: Label[] = []) =>
    new Counter({ name, help, labelNames, registers })
  const info = new Gauge({
    name: 'assay_info',
    help: 'Version of the running service.',
    labelNames: ['version'],
    registers,
    aggregator: 'first',
  })
  info.set({ version: labels.version }, 1)
  const batches = new Histogram({
    name: 'assay_admission_batch_size',
    help: 'Requests that were admitted by one statement.',
    buckets: [1, 2, 4, 8, 16, 32, 64, 128, 256, 512],
    registers,
  })
  const failures = newCounter('assay_internal_errors_total', 'Responses with status 500 and failed connections.')
  const escapeHelp = 'Parsers that the kernel killed because of a forbidden system call.'
  const escapes = newCounter('assay_sandbox_escape_attempts_total', escapeHelp, ['parser'])
  const verdicts = newCounter('assay_scans_total', 'Completed scans.', ['kind', 'status'])
  const testHelp = 'Completed scans of test keys, which assay_scans_total does not include.'
  const tests = newCounter('assay_test_scans_total', testHelp, ['kind', 'status'])
  const attemptHelp = 'Attempts to deliver a webhook, by what follows: delivered, retried, or failed for good.'
  const attempts = newCounter('assay_webhook_attempts_total', attemptHelp, ['outcome'])

  const { collect, addFrom } = makeCollector(registry)

  return {
    registry,
    collect,
    addFrom,
    ...newRequestHistogram(registry, collect),
    ...newLabelledMetrics(registry),
    observeBatch: (size: number) => batches.observe(size),
    countFailure: () => failures.inc(),
    countEscape: (parser: string, count = 1) => escapes.inc({ parser }, count),
    countVerdict: (kind: string, status: string, isTest: boolean) => (isTest ? tests : verdicts).inc({ kind, status }),
    countWebhookAttempt: (outcome: 'delivered' | 'retried' | 'failed') => attempts.inc({ outcome }),
    /** A gauge that is read at each scrape. `aggregator` is the rule for several processes. */
    gauge(name: string, help: string, read: () => number, aggregator: 'sum' | 'max' = 'sum') {
      new Gauge({
        name,
        help,
        registers,
        aggregator,
        collect() {
          this.set(read())
        },
      })
    },
    /** A counter whose value since the start is read at each scrape. */
    total(name: `${string}_total`, help: string, read: () => number) {
      new Counter({
        name,
        help,
        registers,
        collect() {
          this.reset()
          this.inc(read())
        },
      })
    },
    ...makeReadGauges(registers),
  }
}

/** Gauges whose values one call reads at each scrape, such as a statement of the database. */
function makeReadGauges(registers: Registry[]) {
  return {
    /** Gauges with a series for each of some things, which one call reads. When it fails, the scrape is without them. */
    gaugesBy<const Name extends string>(
      label: string,
      helps: Record<Name, string>,
      read: () => Promise<{ label: string; values: NoInfer<Record<Name, number>> }[]>,
    ) {
      const readOnce = makeJoined(read)
      for (const name of Object.keys(helps) as Name[]) {
        new Gauge({
          name,
          help: helps[name],
          labelNames: [label],
          registers,
          aggregator: 'max',
          async collect() {
            const rows = await readOnce().catch(() => [])
            this.reset()
            for (const row of rows) this.set({ [label]: row.label }, row.values[name])
          },
        })
      }
    },
    /** Gauges that one call reads. When the call fails, the scrape succeeds without them. */
    gauges<Name extends string>(helps: Record<Name, string>, read: () => Promise<Record<Name, number>>) {
      const readOnce = makeJoined(read)
      for (const name of Object.keys(helps) as Name[]) {
        new Gauge({
          name,
          help: helps[name],
          registers,
          async collect() {
            const values = await readOnce().catch(() => undefined)
            if (values === undefined) this.remove()
            else this.set(values[name])
          },
        })
      }
    },
  }
}

/** Joins calls while one is under way. */
function makeJoined<T>(read: () => Promise<T>): () => Promise<T> {
  let reading: Promise<T> | undefined
  return () => {
    reading ??= read().finally(() => {
      reading = undefined
    })
    return reading
  }
}

const newLabelledMetrics = (registry: Registry, registers = [registry]) => ({
  /** A histogram of durations by one or two labels; the returned function takes the seconds and the label values. */
  timer(name: string, help: string, labelNames: readonly [first: string, second?: string]) {
    const bounds = [0.005, 0.025, 0.1, 0.25, 0.5, 1, 2.5, 10, 30, 100]
    return makeDurations(registry, { name, help, labelNames, bounds }).observe
  },
  /** A metric with a value for each engine or listener, read at each scrape; a counter when its name says so. */
  byLabel<const Label extends 'engine' | 'listener'>(
    label: Label,
    metric: { name: string; help: string },
    read: () => { label: string; value: number }[],
  ) {
    const options = { ...metric, labelNames: [label], registers }
    if (metric.name.endsWith('_total')) {
      new Counter({
        ...options,
        collect() {
          this.reset()
          for (const row of read()) this.inc({ [label]: row.label } as Record<Label, string>, row.value)
        },
      })
      return
    }
    new Gauge({
      ...options,
      aggregator: 'max',
      collect() {
        for (const row of read()) this.set({ [label]: row.label } as Record<Label, string>, row.value)
      },
    })
  },
})

/** Collects the metrics of this process, and of the others that are added. */
function makeCollector(registry: Registry) {
  let readOthers = async (): Promise<MetricValues[]> => []

  return {
    /** Adds the metrics of other processes at each scrape. */
    addFrom(read: () => Promise<MetricValues[]>) {
      readOthers = read
    },
    async collect(): Promise<Registry> {
      const others = await readOthers()
      if (others.length === 0) return registry
      // Some metrics, such as the time of the start, are those of the main process.
      const own = (await registry.getMetricsAsJSON()).map((metric) =>
        metric.aggregator === 'omit' ? { ...metric, aggregator: 'first' as const } : metric,
      )
      const added = others.map((values) => values.filter(({ aggregator }) => aggregator !== 'omit'))
      return AggregatorRegistry.aggregate([own, ...added])
    },
  }
}

const requestMetric = 'assay_http_request_duration_seconds'

function newRequestHistogram(registry: Registry, collect: () => Promise<Registry>) {
  const requests = makeDurations(registry, {
    name: requestMetric,
    help: 'Time from the first byte of a request to the last byte of its response.',
    labelNames: ['operation', 'status'],
    bounds: requestSeconds,
  })

  return {
    observeRequest: (operation: string, status: number, seconds: number) =>
      requests.observe(seconds, operation, status),
    /** Count and percentiles of all requests since the start. A percentile is the upper bound of its bucket. */
    async summariseRequests() {
      const all = (await collect()).getSingleMetric(requestMetric) as Pick<typeof requests, 'get'> | undefined
      const values = (await all?.get())?.values ?? []
      const buckets = new Map<number, number>()
      for (const { metricName, labels, value } of values) {
        if (metricName?.endsWith('_bucket') !== true) continue
        const { le } = labels as { le?: string | number }
        const limit = le === '+Inf' ? Number.POSITIVE_INFINITY : Number(le)
        buckets.set(limit, (buckets.get(limit) ?? 0) + value)
      }
      const sorted = [...buckets].sort(([a], [b]) => a - b)
      const count = sorted.at(-1)?.[1] ?? 0
      const findLimit = (share: number) => {
        const limit = sorted.find(([, below]) => below >= count * share)?.[0]
        return count === 0 || limit === undefined || !Number.isFinite(limit) ? null : limit * 1000
      }
      return { requests: count, p50_ms: findLimit(0.5), p99_ms: findLimit(0.99) }
    },
  }
}

/** Serves the metrics on their own address and port, because they are for operators and not for callers. */
const noSniff = { 'X-Content-Type-Options': 'nosniff' }

export async function openMetricsServer(metrics: Metrics, { host, port }: { host: string; port: number }) {
  const server = createServer(async (request, response) => {
    if (request.url !== '/metrics') return response.writeHead(404, noSniff).end()
    const registry = await metrics.collect()
    response.writeHead(200, { ...noSniff, 'Content-Type': registry.contentType }).end(await registry.metrics())
  })
  await new Promise<void>((resolve, reject) => {
    server.once('error', reject)
    server.listen(port, host, resolve)
  })
  const address = server.address()
  return {
    port: typeof address === 'object' && address !== null ? address.port : port,
    async close() {
      server.closeAllConnections()
      await new Promise((resolve) => server.close(resolve))
    },
  }
}

import { parseArgs } from 'node:util'
import { watchCores } from './children.ts'
import { checkHeld, drainQueue, fillQueue } from './jobs-drain.ts'
import type { Times } from './jobs-latency.ts'
import { openSetting, type Setting } from './jobs-setting.ts'
import { compareVersions } from './jobs-versions.ts'
import { toCount } from './malware-options.ts'
import type { Row } from './results.ts'

const connections = 64
const queued = 10_000
const passes = 4
const latencyTimes = 100

/** Compared settings. `queue` measures submissions and then the queue they filled; `bare` is followed by its worker. */
type Peer = 'queue' | Exclude<Other, 'bareWorker'>
type Other = 'scan' | 'job' | 'bare' | 'bareWorker' | 'ping' | 'raw' | 'session'
const peers: Peer[] = ['scan', 'job', 'bare', 'ping', 'queue', 'raw', 'session']

const names: Record<Other, string> = {
  scan: `admission in process, ${connections} callers`,
  job: `its two admissions in process, ${connections} callers`,
  bare: `bare server, one admission, ${connections} connections`,
  bareWorker: 'bare worker: claims, scans, ends',
  ping: `GET /v1/ping, ${connections} connections`,
  raw: 'bare INSTREAM client',
  session: 'bare client, kept sessions',
}
/** Durations of turns as in malware.ts. */
const floorConnections = 16

/**
 * Background jobs: rates of acceptance and completion, and the latency of a single job. `--against DIRECTORY` compares
 * with the version in that directory instead, in `--turns` turns of each.
 */
export async function benchJobs(options: string[]): Promise<Row[]> {
  const text = { type: 'string' } as const
  const { against, turns } = parseArgs({ args: options, options: { against: text, turns: text } }).values
  if (against !== undefined) return compareVersions(against, toCount('turns', turns ?? '6'))
  if (turns !== undefined) throw new Error('--turns needs --against')
  process.stderr.write(`  ${process.arch}\n`)
  const setting = await openSetting()
  try {
    const rows = toRows(await compare(setting))
    return [...rows, ...(await measureLatency(setting))]
  } finally {
    await setting.close()
  }
}

type Rate = Other | 'submit' | 'drain'
/** Memory in megabytes: the largest increase by one queue, and the peak. */
type Found = Record<Rate, number> & { grown: number; held: number }

/** Measures all in turn, then in the opposite order, to balance the order; returns means and peak memory. */
async function compare(setting: Setting): Promise<Found> {
  for (const peer of peers) await take(setting, peer, { seconds: 1, count: 2000 })
  const found: Found = {
    scan: 0,
    job: 0,
    bare: 0,
    bareWorker: 0,
    ping: 0,
    raw: 0,
    session: 0,
    submit: 0,
    drain: 0,
    grown: 0,
    held: 0,
  }
  for (let pass = 0; pass < passes; pass++) {
    for (const peer of pass % 2 === 0 ? peers : peers.toReversed()) {
      const { grown = 0, held = 0, ...rates } = await take(setting, peer, { seconds: 3, count: queued })
      for (const [name, rate] of Object.entries(rates)) found[name as Rate] += rate / passes
      found.grown = Math.max(found.grown, grown)
      found.held = Math.max(found.held, held)
    }
  }
  return found
}

/** Measures one turn, limited by time or, for submissions, by their number. */
type Length = { seconds: number; count: number }

async function take(setting: Setting, peer: Peer, length: Length) {
  const found: Partial<Found> = {}
  const watch = async <T extends { perSecond: number }>(name: Rate, work: () => Promise<T>) => {
    await setting.whenIdle()
    const start = performance.now()
    const { result, used, cpuSeconds } = await watchCores(setting.cpu, work)
    const done = (result.perSecond * (performance.now() - start)) / 1000
    // Processor time is more reliable than the rate when the machine has other work.
    const each = `${((cpuSeconds * 1e6) / done).toFixed(0)} µs of processor time each`
    process.stderr.write(`  ${name}: ${toRate(result.perSecond)} ${used}; ${each}\n`)
    found[name] = result.perSecond
    return result
  }
  if (peer !== 'queue') {
    await watch(peer, () => run(setting, peer, length))
    if (peer === 'bare') await watch('bareWorker', () => drainBare(setting))
    return found
  }
  await setting.hold.hold()
  const queue = await watch('submit', () => fillQueue(setting, { count: length.count, connections }))
  await checkHeld(setting, queue)
  const { beforeMegabytes, peakMegabytes: held } = await watch('drain', () => drainQueue(setting, queue))
  process.stderr.write(`  memory of the service: ${beforeMegabytes.toFixed(0)} MB, then ${held.toFixed(0)} MB\n`)
  return { ...found, grown: held - beforeMegabytes, held }
}

/** Measures the rate at which the bare server runs the jobs that it accepted. */
async function drainBare({ bare }: Setting) {
  const start = performance.now()
  const { drained } = (await (await fetch(new URL('/drain', bare.url))).json()) as { drained: number }
  return { perSecond: (drained * 1000) / (performance.now() - start) }
}

function run(
  { service, clamd, gate, bare, load, floor }: Setting,
  peer: Exclude<Peer, 'queue'>,
  { seconds, count }: Length,
) {
  const { url, headers } = service
  if (peer === 'scan' || peer === 'job') return gate.run({ kind: peer, callers: connections, seconds })
  if (peer === 'bare') return load.run({ url: bare.url, headers: [], bytes: 1024, count, connections })
  if (peer === 'ping') return load.run({ ping: { url: new URL('/v1/ping', url).href, headers, connections, seconds } })
  const target = { kind: peer, socket: clamd }
  return floor.run({
    target,
    bytes: 1024,
    connections: floorConnections,
    seconds,
    least: 1,
    unique: true,
  })
}

function toRows(found: Found): Row[] {
  const toRow = (what: string, ours: 'submit' | 'drain', against: Other, wanted: string): Row => ({
    what,
    ours: toRate(found[ours]),
    against: `${names[against]}: ${toRate(found[against])}`,
    ratio: found[ours] / found[against],
    wanted,
  })
  const submits = `POST /v1/malware/submit/file, 1 KB, ${connections} connections, worker held`
  const drains = `${queued} queued jobs of 1 KB`
  return [
    toRow(submits, 'submit', 'scan', 'at least 0.6'),
    toRow(submits, 'submit', 'job', ''),
    toRow(submits, 'submit', 'bare', ''),
    toRow(submits, 'submit', 'ping', ''),
    toRow(drains, 'drain', 'raw', 'at least 0.7'),
    toRow(drains, 'drain', 'session', ''),
    toRow(drains, 'drain', 'bareWorker', ''),
    {
      what: `${drains}, memory growth of the service while they are done`,
      ours: `${Math.round(found.grown)} MB`,
      against: `the most it held: ${Math.round(found.held)} MB`,
      ratio: undefined,
      wanted: 'under 50 MB',
    },
  ]
}

const toRate = (perSecond: number) => `${Math.round(perSecond)}/s`

async function measureLatency({ service, latency, whenIdle }: Setting): Promise<Row[]> {
  const { url, headers } = service
  await whenIdle()
  await latency.run({ url, headers, bytes: 1024, times: 10 })
  const found = await latency.run({ url, headers, bytes: 1024, times: latencyTimes })
  const toText = ({ p50Ms, p95Ms }: (typeof found)[keyof Times]) =>
    `${p50Ms.toFixed(1)} ms, 95 % ${p95Ms.toFixed(1)} ms`
  const toRow = (what: string, name: keyof Times, wanted: string): Row => ({
    what: `1 KB, idle service, ${what}, half of them within`,
    ours: toText(found[name]),
    against: `POST /v1/malware/scan/file: ${toText(found.scan)}`,
    ratio: found[name].p50Ms / found.scan.p50Ms,
    wanted,
  })
  return [
    toRow('submission to webhook received', 'webhook', 'under 100 ms'),
    toRow('start of a job: its record to its verdict', 'verdict', 'under 50 ms'),
    toRow('start of a job: submission of a URL to its download', 'download', 'under 50 ms'),
  ]
}

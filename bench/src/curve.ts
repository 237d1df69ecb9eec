import { openChildren, toMedian, watchCores, whenIdle } from './children.ts'
import type { CurveJob, CurveResult } from './curve-load.ts'
import { listTree, readCpuSeconds, readName } from './processes.ts'
import type { Row } from './results.ts'

const widths = [1, 2, 4, 16, 64, 256]
const passes = 3
const secondsPerTurn = 2

const requestNames = {
  scan: 'malware scans, 1 KB',
  ping: 'GET /v1/ping',
  read: 'result reads',
}
type RequestKind = keyof typeof requestNames
/** `µs` is the processor time per request of service, engine and database together. */
type Point = { perSecond: number; p50Ms: number; p99Ms: number; cpuMicros: number; refused: number }

/** Throughput, latency and processor time of one node from one connection to many. */
export async function benchCurve(): Promise<Row[]> {
  const { startService, startWorker, close } = openChildren()
  try {
    const service = await startService('/v1/malware/scan/file', { ASSAY_NSFW_PROFILE: 'off' })
    const load = startWorker<CurveJob, CurveResult>(new URL('./curve-load.ts', import.meta.url))
    const cpu = () => {
      const parts: Record<string, number> = { service: 0, engine: 0, database: 0 }
      for (const pid of listTree(service.pid)) parts[toPart(pid)] = (parts[toPart(pid)] ?? 0) + readCpuSeconds(pid)
      return parts
    }
    const { headers, url } = service
    const run = (requests: CurveJob['requests'], connections: number, seconds: number) =>
      load.run({ requests, headers, connections, seconds })
    const { ids } = await run({ scan: url }, 16, 3)
    const requests: Record<RequestKind, CurveJob['requests']> = {
      scan: { scan: url },
      ping: { get: [new URL('/v1/ping', url).href] },
      read: { get: ids.map((id) => new URL(`/v1/malware/${id}`, url).href) },
    }
    for (const what of ['ping', 'read'] as const) await run(requests[what], 16, 1)

    const rows: Row[] = []
    for (const what of Object.keys(requestNames) as RequestKind[]) {
      const found = new Map<number, Point[]>(widths.map((width) => [width, []]))
      for (let pass = 0; pass < passes; pass++) {
        for (const width of pass % 2 === 0 ? widths : widths.toReversed()) {
          await whenIdle(cpu)
          const { result, used, cpuSeconds } = await watchCores(cpu, () => run(requests[what], width, secondsPerTurn))
          const cpuMicros = (cpuSeconds * 1e6) / result.done
          process.stderr.write(`  ${what} ${width}: ${toText({ ...result, cpuMicros })} ${used}\n`)
          found.get(width)?.push({ ...result, cpuMicros })
        }
      }
      rows.push(...toRows(requestNames[what], found))
    }
    return rows
  } finally {
    await close()
  }
}

function toRows(what: string, found: Map<number, Point[]>): Row[] {
  const middles = widths.map((width) => toMedianPoint(found.get(width) ?? []))
  const [one] = middles
  if (one === undefined) return []
  return widths.map((width, i) => {
    const point = middles[i] ?? one
    return {
      what: `${what}, ${width} connection${width === 1 ? '' : 's'}`,
      ours: toText(point),
      against: width === 1 ? '' : `cost of each at 1 connection: ${Math.round(one.cpuMicros)} µs`,
      ratio: width === 1 ? undefined : point.cpuMicros / one.cpuMicros,
      wanted: width === 1 ? '' : 'at most 1',
    }
  })
}

const toMedianPoint = (points: Point[]): Point => {
  const middle = (name: keyof Point) => toMedian(points.map((point) => point[name]))
  return {
    perSecond: middle('perSecond'),
    p50Ms: middle('p50Ms'),
    p99Ms: middle('p99Ms'),
    cpuMicros: middle('cpuMicros'),
    refused: middle('refused'),
  }
}

const toText = ({ perSecond, p50Ms, p99Ms, cpuMicros, refused }: Point) =>
  `${Math.round(perSecond)}/s, p50 ${p50Ms.toFixed(1)} ms, p99 ${p99Ms.toFixed(1)} ms, ${Math.round(cpuMicros)} µs` +
  (refused > 0 ? `, ${refused} refused` : '')

function toPart(pid: number): string {
  const name = readName(pid)
  if (name === 'clamd') return 'engine'
  return name === 'postgres' ? 'database' : 'service'
}

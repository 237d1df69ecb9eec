import { openChildren, type Server, type Service, sum, toMedian, whenIdle } from './children.ts'
import { sendGets } from './load.ts'
import type { LoadResult, UploadJob, UploadResult } from './malware-load.ts'
import { listTree, readCommandLine, readCpuSeconds, readName, readThreadSeconds } from './processes.ts'
import type { Row } from './results.ts'

const rounds = 6
const seconds = 1.5
/** Requests of each connection with which a service compiles what it runs, whatever else the machine does. */
const warmUpRequests = 250
const connections = 16
const coreCounts = [4, 16, 64]
const coresPerProcess = 4
const mostProcesses = 4

/** Kinds of requests. Uploads of `bytes` go to `path`; without them, the request is a GET. */
const kinds = {
  ping: { path: '/v1/ping' },
  'scan of 1 KB': { path: '/v1/malware/scan/file', bytes: 1024, expected: '"status":"clean"' },
  'repeated scan of 1 KB': { path: '/v1/malware/scan/file', bytes: 1024, expected: '"status":"clean"', repeats: true },
  'scan of 100 KB': { path: '/v1/malware/scan/file', bytes: 102_400, expected: '"status":"clean"' },
  'scan of 1 MB': { path: '/v1/malware/scan/file', bytes: 1_048_576, expected: '"status":"clean"' },
  'submission of 1 KB': { path: '/v1/malware/submit/file', bytes: 1024, expected: '"id"' },
} satisfies Record<string, Kind>
type Kind = { path: string; bytes?: number; expected?: string; repeats?: boolean }
/** The kinds for which the figures of several processes are bounded. */
const bounded = ['ping', 'scan of 1 KB', 'repeated scan of 1 KB'] as const

/** Processor seconds of the parts of a service. `main` and `http` are main threads, of all HTTP processes together. */
type Used = { main: number; http: number; service: number; clamd: number; postgres: number }
/** Microseconds for each request. */
type Turn = Used & { perSecond: number }

/**
 * The service with one HTTP process and with two, in short alternating turns. Prints what the main threads need for each
 * kind of request, and computes from that what machines with more cores hold.
 */
export async function benchHttpProcesses(): Promise<Row[]> {
  const children = openChildren()
  try {
    const start = (count: string) =>
      children.startService('', { ASSAY_HTTP_PROCESSES: count, ASSAY_NSFW_PROFILE: 'off' }, { name: `data-${count}` })
    const services = { one: await start('1'), two: await start('2') }
    const load = children.startWorker<UploadJob, LoadResult>(new URL('./malware-load.ts', import.meta.url))
    const send = (service: Service, kind: Kind, least = 1) => sendLoad(load.run<UploadResult>, service, kind, least)
    for (const service of Object.values(services))
      for (const name of bounded) await send(service, kinds[name], warmUpRequests)
    const rows: Row[] = []
    const found: Record<string, { one: Turn; two: Turn }> = {}
    for (const [name, kind] of Object.entries<Kind>(kinds)) {
      const turns = await takeTurns(services, (service) => send(service, kind))
      found[name] = toMiddles(name, turns)
      if (bounded.some((one) => one === name)) rows.push(...toRows(name, turns, found[name]))
    }
    rows.push(await measureBare(children.startServer))
    process.stdout.write(`${toTable(found)}\n\n${toForecast(found)}\n\n`)
    return rows
  } finally {
    await children.close()
  }
}

type Turns = { one: Turn[]; two: Turn[] }

async function takeTurns<Side extends Server>(
  servers: { one: Side; two: Side },
  send: (server: Side) => Promise<{ perSecond: number; done: number }>,
): Promise<Turns> {
  const turns: Turns = { one: [], two: [] }
  for (let round = 0; round < rounds; round++) {
    for (const side of round % 2 === 0 ? (['one', 'two'] as const) : (['two', 'one'] as const)) {
      turns[side].push(await measure(servers[side], () => send(servers[side])))
    }
  }
  return turns
}

function toMiddles(name: string, turns: Turns) {
  const [one, two] = [toMiddle(turns.one), toMiddle(turns.two)]
  process.stderr.write(`  ${name}\n    one ${describe(one)}\n    two ${describe(two)}\n`)
  return { one, two }
}

/** Measures what a second process costs the smallest program, which does nothing but pass requests on. */
async function measureBare(startServer: ReturnType<typeof openChildren>['startServer']): Promise<Row> {
  const start = (...args: string[]) => startServer(new URL('./bare-processes.ts', import.meta.url), args)
  const servers = { one: await start(), two: await start('two') }
  const send = ({ url }: Server) => sendGets({ url, headers: [], connections, seconds })
  for (const server of Object.values(servers)) await send(server)
  const { one, two } = toMiddles('bare request', await takeTurns(servers, send))
  return {
    what: 'the smallest program in two HTTP processes, processor time of a request',
    ours: `${Math.round(two.service)} µs`,
    against: `in one: ${Math.round(one.service)} µs`,
    ratio: two.service / one.service,
    wanted: '',
  }
}

type Load = (job: UploadJob) => Promise<UploadResult>

/** Each connection sends for `seconds`, and at least that many requests. */
async function sendLoad(run: Load, { url, headers }: Service, kind: Kind, least: number) {
  const { path, bytes, expected = '', repeats = false } = kind
  if (bytes === undefined) return sendGets({ url: url + path, headers, connections, seconds, least })
  const target = { kind: 'http' as const, url: url + path, headers, expected }
  return run({ target, bytes, connections, seconds, least, unique: !repeats })
}

async function measure(service: Server, send: () => Promise<{ perSecond: number; done: number }>): Promise<Turn> {
  await whenIdle(() => ({ service: sum(listTree(service.pid).map(readCpuSeconds)) }))
  const before = readUsed(service)
  const { perSecond, done } = await send()
  const now = readUsed(service)
  const toMicros = (name: keyof Used) => ((now[name] - before[name]) * 1e6) / done
  return {
    perSecond,
    main: toMicros('main'),
    http: toMicros('http'),
    service: toMicros('service'),
    clamd: toMicros('clamd'),
    postgres: toMicros('postgres'),
  }
}

function readUsed({ pid }: Server): Used {
  const used: Used = { main: readThreadSeconds(pid), http: 0, service: 0, clamd: 0, postgres: 0 }
  for (const each of listTree(pid)) {
    const name = readName(each)
    const part = name === 'clamd' || name === 'postgres' ? name : 'service'
    used[part] += readCpuSeconds(each)
    if (readCommandLine(each).includes('http-process/main.ts')) used.http += readThreadSeconds(each)
  }
  return used
}

function toMiddle(turns: Turn[]): Turn {
  const find = (name: keyof Turn) => toMedian(turns.map((turn) => turn[name]))
  return {
    perSecond: find('perSecond'),
    main: find('main'),
    http: find('http'),
    service: find('service'),
    clamd: find('clamd'),
    postgres: find('postgres'),
  }
}

const toTotal = ({ service, clamd, postgres }: Turn) => service + clamd + postgres

const describe = (turn: Turn) =>
  `${Math.round(turn.perSecond)}/s; main thread ${Math.round(turn.main)}, of HTTP processes ${Math.round(turn.http)}; ` +
  `service / clamd / PostgreSQL ${[turn.service, turn.clamd, turn.postgres].map(Math.round).join(' / ')} µs`

function toRows(name: string, turns: Turns, { one, two }: { one: Turn; two: Turn }): Row[] {
  const ratios = turns.two.map((turn, round) => turn.perSecond / (turns.one[round]?.perSecond ?? 1))
  const rate: Row = {
    what: `two HTTP processes, ${name}, ${connections} connections`,
    ours: `${Math.round(two.perSecond)}/s`,
    against: `one: ${Math.round(one.perSecond)}/s`,
    ratio: toMedian(ratios),
    wanted: 'at least 0.95',
  }
  const postgres: Row = {
    what: `two HTTP processes, ${name}, processor time of PostgreSQL`,
    ours: `${Math.round(two.postgres)} µs`,
    against: `one: ${Math.round(one.postgres)} µs`,
    ratio: two.postgres / one.postgres,
    wanted: 'at most 1.2',
  }
  return [rate, postgres]
}

function toTable(found: Record<string, { one: Turn; two: Turn }>): string {
  const lines = Object.entries(found).map(
    ([name, { one, two }]) =>
      `| ${[name, one.main, two.http, two.main, toTotal(one), toTotal(two)].map(toCell).join(' | ')} |`,
  )
  return [
    'Processor time of a request in µs: main threads, and all processes together.',
    '',
    '| Request | One process | HTTP process | Main process of two | All, with one | All, with two |',
    '| --- | --- | --- | --- | --- | --- |',
    ...lines,
  ].join('\n')
}

/**
 * The rate is bounded by the main threads of the HTTP processes, by that of the main process, and by all cores together.
 */
function toForecast(found: Record<string, { one: Turn; two: Turn }>): string {
  const forecast = ({ one, two }: { one: Turn; two: Turn }, cores: number) => {
    const processes = Math.min(mostProcesses, Math.max(1, Math.floor(cores / coresPerProcess)))
    const alone = Math.min(1e6 / one.main, (cores * 1e6) / toTotal(one))
    const together = Math.min((processes * 1e6) / two.http, 1e6 / two.main, (cores * 1e6) / toTotal(two))
    return `${Math.round(processes === 1 ? alone : together)} (${Math.round(alone)})`
  }
  const lines = Object.entries(found).map(
    ([name, times]) => `| ${name} | ${coreCounts.map((cores) => forecast(times, cores)).join(' | ')} |`,
  )
  return [
    'Requests per second, computed from these times and not measured; in parentheses with one process.',
    '',
    `| Request | ${coreCounts.map((cores) => `${cores} cores`).join(' | ')} |`,
    `| --- |${coreCounts.map(() => ' --- |').join('')}`,
    ...lines,
  ].join('\n')
}

const toCell = (value: string | number) => (typeof value === 'number' ? String(Math.round(value)) : value)

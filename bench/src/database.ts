import pg from 'pg'
import { takeSubmits, whenReady } from './cluster.ts'
import { openSetting, type Setting, type SideName } from './cluster-setting.ts'
import type { CurveJob, CurveResult } from './curve-load.ts'
import type { Row } from './results.ts'

const [seconds, connections] = [4, 16]
const jobs = 1500

/** A kind of request and the number of requests sent. */
type Done = { count: number; perSecond: number }
type Costs = { statements: number; commits: number; execMicros: number; walBytes: number; cpu: Record<string, number> }

const names: Record<Exclude<SideName, 'one'>, string> = {
  both: '2 nodes of both roles',
  cluster: '2 API and 2 worker nodes',
}

/** Cost of requests in PostgreSQL (statements, time, WAL) and in other processes, and size of a stored result. */
export async function benchDatabase(): Promise<Row[]> {
  const setting = await openSetting(['shared_preload_libraries=pg_stat_statements', 'max_wal_size=4GB'])
  const admin = new pg.Pool({ connectionString: setting.adminUrl, max: 1 })
  try {
    await admin.query('create extension pg_stat_statements')
    await Promise.all([whenReady(setting.sides.both), whenReady(setting.sides.cluster)])
    const rows: Row[] = []
    for (const side of ['both', 'cluster'] as const) {
      const take = async (what: string, work: () => Promise<Done>) => {
        const { done, costs } = await watch(setting, admin, side, work)
        process.stderr.write(`  ${what} ${side}: ${Math.round(done.perSecond)}/s ${JSON.stringify(costs)}\n`)
        rows.push(toRow(`${what}, ${names[side]}`, done, costs))
      }
      await sendRequests(setting, side, 'scan', 2)
      const { ids } = await sendRequests(setting, side, 'scan', 1)
      await take('malware scan, 1 KB', () => sendRequests(setting, side, 'scan', seconds))
      await take('submit of 1 KB and its scan', () => submit(setting, side, jobs, 1024))
      await take('submit of 1 MB and its scan, over S3', () => submit(setting, side, 40, 1024 * 1024))
      await take('ping', () => sendRequests(setting, side, 'ping', seconds))
      await take('result read', () => sendRequests(setting, side, ids, seconds))
    }
    return [...rows, ...(await measureStorage(setting))]
  } finally {
    await admin.end()
    await setting.close()
  }
}

async function watch(setting: Setting, admin: pg.Pool, side: SideName, work: () => Promise<Done>) {
  const { pool } = setting.sides[side]
  const { rows: own } = await pool.query<{ name: string }>('select current_database() as name')
  const readCounters = async () => {
    const { rows } = await admin.query<Record<string, number>>(selectCounters, [own[0]?.name])
    return { ...rows[0], cpu: setting.cpu() }
  }
  await setting.whenIdle()
  const before = await readCounters()
  const done = await work()
  await setting.whenIdle()
  const after = await readCounters()
  const each = (name: string) =>
    (Number((after as Record<string, unknown>)[name]) - Number((before as Record<string, unknown>)[name])) / done.count
  const cpu = Object.fromEntries(
    Object.entries(after.cpu).map(([part, at]) => [part, ((at - (before.cpu[part] ?? 0)) * 1e6) / done.count]),
  )
  const costs: Costs = {
    statements: each('statements'),
    commits: each('commits'),
    walBytes: each('wal'),
    execMicros: each('micros'),
    cpu,
  }
  return { done, costs }
}

/** $1 is the name of the database. */
const selectCounters = `
select sum(calls)::float8 as statements, sum(total_exec_time)::float8 * 1000 as micros,
  (select xact_commit::float8 from pg_stat_database where datname = $1) as commits,
  (pg_current_wal_lsn() - '0/0'::pg_lsn)::float8 as wal
from pg_stat_statements join pg_database on dbid = pg_database.oid where datname = $1`

/** Sends requests to both API nodes: `what` is their kind, or the addresses of results to read. */
async function sendRequests(setting: Setting, side: SideName, what: 'scan' | 'ping' | string[], forSeconds: number) {
  const results = await Promise.all(
    setting.sides[side].apis.map(({ url, headers }, i): Promise<CurveResult> => {
      const toUrl = (path: string) => new URL(path, url).href
      const gets = what === 'ping' ? ['/v1/ping'] : what === 'scan' ? [] : what.map((id) => `/v1/malware/${id}`)
      const requests: CurveJob['requests'] = what === 'scan' ? { scan: url } : { get: gets.map(toUrl) }
      const load = setting.curves[i] ?? setting.curves[0]
      return load.run({ requests, headers, connections: connections / 2, seconds: forSeconds })
    }),
  )
  const sum = (name: 'done' | 'perSecond') => results.reduce((all, result) => all + result[name], 0)
  return { count: sum('done'), perSecond: sum('perSecond'), ids: results.flatMap(({ ids }) => ids) }
}

async function submit(setting: Setting, side: SideName, count: number, bytes: number): Promise<Done> {
  return { perSecond: await takeSubmits(setting, side, count, bytes), count: 2 * count }
}

function toRow(what: string, { perSecond }: Done, { statements, commits, execMicros, walBytes, cpu }: Costs): Row {
  const toMicros = (part: string) => `${Math.round(cpu[part] ?? 0)} µs`
  const s3 = (cpu.s3 ?? 0) > 50 ? `, S3 ${toMicros('s3')}` : ''
  return {
    what: `cost of each ${what}, at ${Math.round(perSecond)}/s`,
    ours: `PostgreSQL: ${statements.toFixed(2)} statements, ${commits.toFixed(2)} commits, ${Math.round(execMicros)} µs in statements, ${Math.round(walBytes)} bytes of WAL`,
    against: `processor time: nodes ${toMicros('nodes')}, engines ${toMicros('engines')}, PostgreSQL ${toMicros('databases')}${s3}`,
    ratio: undefined,
    wanted: '',
  }
}

/** Size on disk with indexes and free space. */
async function measureStorage({ sides }: Setting): Promise<Row[]> {
  const { pool } = sides.both
  const { rows } = await pool.query<{ results: string; scans: string }>(`
    select (select count(*) from scans) as results,
      (select sum(pg_total_relation_size(inhrelid)) from pg_inherits where inhparent = 'scans'::regclass) as scans`)
  const { results = '1', scans = '0' } = rows[0] ?? {}
  const each = (bytes: string) => `${Math.round(Number(bytes) / Number(results))} bytes`
  return [
    {
      what: `what a stored result of 1 KB takes, of ${results}`,
      ours: `${each(scans)}, with indexes`,
      against: '',
      ratio: undefined,
      wanted: '',
    },
  ]
}

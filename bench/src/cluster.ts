import { setTimeout as sleep } from 'node:timers/promises'
import { toMedian, watchCores } from './children.ts'
import { openSetting, type Setting, type Side, type SideName } from './cluster-setting.ts'
import { listTree, readMegabytesTogether } from './processes.ts'
import type { Row } from './results.ts'

const sideNames: SideName[] = ['one', 'cluster', 'both']
const passes = 5
const secondsPerTurn = 2.5
/** Connections of each of the two load generators, one for each node that takes requests. */
const [scanConnections, submitConnections, submitCount] = [8, 32, 1500]

type Rates = Record<SideName, number[]>

/** Nodes over one PostgreSQL and one S3 against one process with both roles, all on one machine. */
export async function benchCluster(): Promise<Row[]> {
  const setting = await openSetting()
  try {
    await Promise.all(sideNames.map((name) => whenReady(setting.sides[name])))
    for (const name of sideNames) await takeScans(setting, name, 2)
    for (const name of sideNames) await takeSubmits(setting, name, 500)
    const scans = await compare(setting, 'scans', (name) => takeScans(setting, name, secondsPerTurn))
    const submits = await compare(setting, 'submits', (name) => takeSubmits(setting, name, submitCount))
    return [
      ...toRows(`malware scans, 1 KB, ${2 * scanConnections} connections`, scans),
      ...toRows(`submits of 1 KB, ${2 * submitConnections} connections, until the queue is empty`, submits),
      ...toMemoryRows(setting),
    ]
  } finally {
    await setting.close()
  }
}

/** Measures all settings in turn, then in the opposite order. */
async function compare(setting: Setting, what: string, take: (name: SideName) => Promise<number>): Promise<Rates> {
  const rates: Rates = { one: [], cluster: [], both: [] }
  for (let pass = 0; pass < passes; pass++) {
    for (const name of pass % 2 === 0 ? sideNames : sideNames.toReversed()) {
      await setting.whenIdle()
      const { result, used } = await watchCores(setting.cpu, () => take(name))
      process.stderr.write(`  ${what} ${name}: ${Math.round(result)}/s ${used}\n`)
      rates[name].push(result)
    }
  }
  return rates
}

async function takeScans({ sides, scans }: Setting, name: SideName, seconds: number): Promise<number> {
  const { apis } = sides[name]
  const results = await Promise.all(
    apis.map(({ url, headers }, i) => {
      const target = { kind: 'http' as const, url, headers, expected: '"status":"clean"' }
      const job = { target, bytes: 1024, connections: scanConnections, seconds, least: 1, unique: true }
      return (scans[i] ?? scans[0]).run(job)
    }),
  )
  return results.reduce((sum, { perSecond }) => sum + perSecond, 0)
}

/** Measures from the first submission until no job is left; all must be clean. */
export async function takeSubmits(
  { sides, submits }: Setting,
  name: SideName,
  count: number,
  bytes = 1024,
): Promise<number> {
  const { apis, pool } = sides[name]
  const since = new Date()
  const start = performance.now()
  await Promise.all(
    apis.map(({ url, headers }, i) =>
      (submits[i] ?? submits[0]).run({
        url: new URL('/v1/malware/submit/file', url).href,
        headers,
        bytes,
        count,
        connections: submitConnections,
      }),
    ),
  )
  for (const deadline = Date.now() + 60_000; ; await sleep(5)) {
    const { rows } = await pool.query<{ left: boolean }>('select exists (select from jobs) as left')
    if (rows[0]?.left === false) break
    if (Date.now() > deadline) throw new Error('The queue is not empty after a minute')
  }
  const seconds = (performance.now() - start) / 1000
  const { rows } = await pool.query<{ status: string; found: string }>(
    `select status, count(*) as found from scans where content_name = 'queued.txt' and created_at >= $1 group by status`,
    [since],
  )
  const found = rows.map((row) => `${row.found} ${row.status}`).join(', ')
  if (found !== `${2 * count} clean`) throw new Error(`Of ${2 * count} jobs there are ${found}`)
  return (2 * count) / seconds
}

export async function whenReady({ apis }: Side) {
  for (const { url } of apis) {
    for (let left = 300; (await fetch(new URL('/readyz', url))).status !== 200; left--) {
      if (left === 0) throw new Error('A node is not ready after half a minute')
      await sleep(100)
    }
  }
}

function toRows(what: string, rates: Rates): Row[] {
  const names: Record<SideName, string> = {
    one: 'one process with everything',
    cluster: '2 API and 2 worker nodes',
    both: '2 nodes of both roles',
  }
  const toRate = (name: SideName) => `${Math.round(toMedian(rates[name]))}/s`
  return (['cluster', 'both'] as const).map((name) => ({
    what: `${what}, ${names[name]}, PostgreSQL and S3, one machine`,
    ours: toRate(name),
    against: `${names.one}: ${toRate('one')}`,
    ratio: toMedian(rates[name].map((rate, i) => rate / (rates.one[i] ?? rate))),
    wanted: '',
  }))
}

/** Memory of the nodes after the load of the measurements above. */
function toMemoryRows({ sides: { cluster } }: Setting): Row[] {
  const [api, , worker] = cluster.nodes
  const toText = (pids: number[]) => `${Math.round(readMegabytesTogether(pids))} MB`
  const toRow = (what: string, pid: number): Row => ({
    what: `memory of ${what} after these scans`,
    ours: toText([pid]),
    against: `with its engines: ${toText(listTree(pid))}`,
    ratio: undefined,
    wanted: '',
  })
  return [toRow('an API node', api?.pid ?? 0), toRow('a worker node, images off', worker?.pid ?? 0)]
}

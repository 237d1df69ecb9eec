import { setTimeout as sleep } from 'node:timers/promises'
import { world } from '../../acceptance/support/origin.ts'
import { runProgram } from '../../acceptance/support/run-program.ts'
import { openStores } from '../../packages/server/src/compose/stores.ts'
import { loadConfig } from '../../packages/server/src/config/load-config.ts'
import { makeLogger } from '../../packages/server/src/runtime/logger.ts'
import { openChildren, toMedian, watchCores, whenIdle } from './children.ts'
import { openHold } from './jobs-hold.ts'
import type { LoadResult, SubmitJob } from './jobs-load.ts'
import type { AbuseJob, AbuseResult, Kind } from './neighbours-abuse.ts'
import type { ClientJob, ClientResult } from './neighbours-client.ts'
import { listTree, readCpuSeconds, readName } from './processes.ts'
import type { Row } from './results.ts'

const quietSeconds = 3
const abusedSeconds = 6
const queuedJobs = 10_000
/** The abuse begins this long before it is measured. */
const leadMs = 1500

const kinds: Kind[] = [
  'pipelined requests',
  'pipelined requests without a key',
  'requests with wrong keys',
  'connections with a wrong key each',
  'an upload in 1-byte chunks',
  'an upload with a long boundary',
  'slow uploads',
  'sign-ins',
  'bombs',
]

type Times = Pick<ClientResult, 'pings' | 'scans'>
type Setting = Awaited<ReturnType<typeof openSetting>>

/**
 * Latency of a well-behaved account beside each kind of abuse by another one, against that on a quiet service. Quiet
 * turns come before each kind, so that other work of the machine affects both sides.
 */
export async function benchNeighbours(): Promise<Row[]> {
  const setting = await openSetting()
  // ASSAY_BENCH_KINDS measures only the kinds whose names contain this text.
  const wanted = process.env.ASSAY_BENCH_KINDS ?? ''
  try {
    const quiet: Times = { pings: [], scans: [] }
    const found: { name: string; times: Times }[] = []
    await measure(setting, 'warm-up', 4)
    if (jobsName.includes(wanted)) {
      await addQuiet(setting, quiet)
      found.push({ name: jobsName, times: await besideJobs(setting) })
    }
    for (const kind of kinds.filter((name) => name.includes(wanted))) {
      await addQuiet(setting, quiet)
      const abuse = setting.abuse.run({ kind, ...setting.abuser, url: setting.service.url, address: '127.0.0.9' })
      await Promise.race([abuse, sleep(leadMs)])
      const times = await measure(setting, kind, abusedSeconds)
      setting.abuse.stop()
      process.stderr.write(`    answers to the abuser: ${JSON.stringify((await abuse).answers)}\n`)
      found.push({ name: kind, times })
    }
    return found.flatMap(({ name, times }) => [
      toRow(`GET /v1/ping beside ${name}`, times.pings, quiet.pings),
      toRow(`malware scan of 1 KB beside ${name}`, times.scans, quiet.scans),
    ])
  } finally {
    await setting.close()
  }
}

const jobsName = `${queuedJobs} queued jobs`

async function openSetting() {
  const { startService, startWorker, close: closeChildren } = openChildren()
  const closers = [closeChildren]
  const close = async () => {
    for (const end of closers.toReversed()) await end()
  }
  try {
    const service = await startService('/v1/malware/scan/file', { ASSAY_OUTBOUND_ALLOW: world })
    const env = { ASSAY_DATA_DIR: service.dataDir }
    const create = ['accounts', 'create', '--name', 'abuser', '--plan', 'unlimited', '--json']
    const { code, out, err } = await runProgram(env, ...create)
    if (code !== 0) throw new Error(`No account for the abuser: ${err}`)
    const { config } = loadConfig({ ...process.env, ...env })
    const stores = await openStores(config, 'command', makeLogger({ level: 'warn', region: config.region }))
    closers.push(stores.close)
    const abuser = { key: (JSON.parse(out) as { api_key: string }).api_key }
    const hold = await openHold({
      service: { ...service, headers: [`X-API-Key: ${abuser.key}`] },
      jobs: stores.jobs,
    })
    closers.push(hold.close)
    const client = startWorker<ClientJob, ClientResult>(new URL('./neighbours-client.ts', import.meta.url))
    const abuse = startWorker<AbuseJob, AbuseResult>(new URL('./neighbours-abuse.ts', import.meta.url))
    const submits = startWorker<SubmitJob, LoadResult>(new URL('./jobs-load.ts', import.meta.url))
    const cpu = () => {
      const parts = { service: 0, engines: 0, database: 0 }
      for (const pid of listTree(service.pid)) parts[toPart(service.pid, pid)] += readCpuSeconds(pid)
      return { ...parts, client: readCpuSeconds(client.pid), abuser: readCpuSeconds(abuse.pid) }
    }
    return { service, abuser, stores, hold, client, abuse, submits, cpu, close }
  } catch (error) {
    await close()
    throw error
  }
}

function toPart(service: number, pid: number): 'service' | 'engines' | 'database' {
  if (pid === service) return 'service'
  return readName(pid) === 'postgres' ? 'database' : 'engines'
}

async function addQuiet(setting: Setting, quiet: Times) {
  await whenIdle(setting.cpu)
  const times = await measure(setting, 'quiet', quietSeconds)
  quiet.pings.push(...times.pings)
  quiet.scans.push(...times.scans)
}

async function measure({ service, client, cpu }: Setting, name: string, seconds: number): Promise<Times> {
  const { result, used } = await watchCores(cpu, () =>
    client.run({ url: service.url, headers: service.headers, seconds }),
  )
  const { pings, scans, failed } = result
  process.stderr.write(`  ${name}: pings ${toText(pings)}, scans ${toText(scans)} ${used}\n`)
  if (failed.length > 0) process.stderr.write(`    ${failed.length} failed, such as ${JSON.stringify(failed[0])}\n`)
  return { pings, scans }
}

/** Fills the queue while the worker is held, and measures while the jobs run. */
async function besideJobs(setting: Setting): Promise<Times> {
  const { service, abuser, hold, submits, stores } = setting
  await hold.hold()
  const url = new URL('/v1/malware/submit/file', service.url).href
  await submits.run({
    url,
    headers: [`X-API-Key: ${abuser.key}`],
    bytes: 1024,
    count: queuedJobs,
    connections: 64,
  })
  await whenIdle(setting.cpu)
  hold.release()
  await sleep(leadMs)
  const times = await measure(setting, jobsName, abusedSeconds)
  const { waiting, running } = await stores.jobs.countJobs()
  process.stderr.write(`    ${waiting + running} jobs are left\n`)
  return times
}

function toRow(what: string, times: number[], quiet: number[]): Row {
  const median = toMedian(times) / toMedian(quiet)
  const p99 = toP99(times) / toP99(quiet)
  return {
    what,
    ours: toText(times),
    against: `quiet: ${toText(quiet)}`,
    ratio: p99,
    wanted: `median at most 2 times: ${median.toFixed(2)}; p99 at most 4 times`,
  }
}

const toP99 = (times: number[]) => times.toSorted((a, b) => a - b)[Math.ceil(times.length * 0.99) - 1] ?? 0

const toText = (times: number[]) => `median ${toMedian(times).toFixed(1)} ms, p99 ${toP99(times).toFixed(1)} ms`

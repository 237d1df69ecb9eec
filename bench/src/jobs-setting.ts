import { join } from 'node:path'
import pg from 'pg'
import { world } from '../../acceptance/support/origin.ts'
import { makeJobStore } from '../../packages/server/src/database/job-store.ts'
import { toSocket } from '../../packages/server/src/engines/clamav/clamd-config.ts'
import { type Children, type Cpu, openChildren, sum, whenIdle } from './children.ts'
import type { GateJob, GateResult } from './jobs-gate.ts'
import { openHold } from './jobs-hold.ts'
import type { LatencyJob, LatencyResult } from './jobs-latency.ts'
import type { LoadResult, PingJob, SubmitJob } from './jobs-load.ts'
import type { UploadJob, UploadResult } from './malware-load.ts'
import { listTree, readCpuSeconds, readEndedCpuSeconds, readName } from './processes.ts'

export type Setting = Awaited<ReturnType<typeof openSetting>>

/**
 * The service as a user starts it, with a hold on its worker and access to its database, and the peers:
 * its gate on a database of its own, without HTTP and behind a bare server, and its clamd alone. The caller
 * closes it.
 */
export async function openSetting() {
  const children = openChildren()
  const { dir, startServer, startWorker } = children
  const closers = [children.close]
  const close = () => closeAll(closers.toReversed())
  try {
    const target = await openTarget(children)
    closers.push(target.close)
    const { service } = target
    const clamd = toSocket(join(service.dataDir, 'clamav'))
    const load = startWorker<SubmitJob | PingJob, LoadResult>(new URL('./jobs-load.ts', import.meta.url))
    const latency = startWorker<LatencyJob, LatencyResult>(new URL('./jobs-latency.ts', import.meta.url))
    const gate = startWorker<GateJob, GateResult>(new URL('./jobs-gate.ts', import.meta.url), [join(dir, 'gate')])
    const bare = await startServer(new URL('./bare-submit.ts', import.meta.url), [join(dir, 'bare'), clamd])
    const floor = startWorker<UploadJob, UploadResult>(new URL('./malware-load.ts', import.meta.url))
    const cpu: Cpu = () => ({
      ...target.cpu(),
      gate: readCpuSeconds(gate.pid),
      'its database': readChildren(gate.pid),
      'bare server': readCpuSeconds(bare.pid),
      'the database of that': readChildren(bare.pid),
      load: readCpuSeconds(load.pid),
      'bare client': readCpuSeconds(floor.pid),
    })
    return { ...target, clamd, load, latency, gate, bare, floor, cpu, whenIdle: () => whenIdle(cpu), close }
  } catch (error) {
    await close()
    throw error
  }
}

export type Target = Awaited<ReturnType<typeof openTarget>>

/** Starts a service and holds its worker. `root` is the repository of another version. The caller closes it. */
export async function openTarget({ startService }: Children, version: { name?: string; root?: string } = {}) {
  const service = await startService('/v1/malware/submit/file', { ASSAY_OUTBOUND_ALLOW: world }, version)
  // No part of a version but its database is used, so that older ones can be measured.
  const pool = new pg.Pool({ host: join(service.dataDir, 'postgres/run'), user: 'assay', database: 'postgres', max: 2 })
  // The database of a service that is interrupted ends before this pool.
  pool.on('error', () => {})
  const endPool = () => pool.end()
  const hold = await openHold({ service, jobs: makeJobStore({ pool, listQueues: () => [] }) }).catch(async (error) => {
    await endPool()
    throw error
  })
  const cpu: Cpu = () => {
    const parts = { service: 0, engine: 0, database: 0 }
    for (const pid of listTree(service.pid)) {
      const part = toPart(pid)
      // Connections of PostgreSQL that were closed have ended with their processes.
      parts[part] += readCpuSeconds(pid) + (part === 'database' ? readEndedCpuSeconds(pid) : 0)
    }
    return parts
  }
  const close = () => closeAll([hold.close, endPool])
  return { service, pool, hold, cpu, close }
}

/** Closes one after the other, the rest also when one fails: an open pool or child process keeps the bench running. */
export async function closeAll(closers: (() => unknown)[]) {
  const [first, ...rest] = closers
  try {
    await first?.()
  } finally {
    if (rest.length > 0) await closeAll(rest)
  }
}

const readChildren = (pid: number) => sum(listTree(pid).map(readCpuSeconds)) - readCpuSeconds(pid)

function toPart(pid: number): 'service' | 'engine' | 'database' {
  const name = readName(pid)
  if (name === 'clamd') return 'engine'
  return name === 'postgres' ? 'database' : 'service'
}

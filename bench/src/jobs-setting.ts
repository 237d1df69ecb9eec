import { join } from 'node:path'
import { world } from '../../acceptance/support/origin.ts'
import { openStores } from '../../packages/server/src/compose/stores.ts'
import { loadConfig } from '../../packages/server/src/config/load-config.ts'
import { toSocket } from '../../packages/server/src/engines/clamav/clamd-config.ts'
import { makeLogger } from '../../packages/server/src/runtime/logger.ts'
import { type Cpu, openChildren, sum, whenIdle } from './children.ts'
import type { GateJob, GateResult } from './jobs-gate.ts'
import { openHold } from './jobs-hold.ts'
import type { LatencyJob, LatencyResult } from './jobs-latency.ts'
import type { LoadResult, PingJob, SubmitJob } from './jobs-load.ts'
import type { UploadJob, UploadResult } from './malware-load.ts'
import { listTree, readCpuSeconds, readName } from './processes.ts'

export type Setting = Awaited<ReturnType<typeof openSetting>>

/**
 * The service as a user starts it, with a hold on its worker and access to its database, and the peers:
 * its gate on a database of its own, without HTTP and behind a bare server, and its clamd alone. The caller
 * closes it.
 */
export async function openSetting() {
  const { dir, startService, startServer, startWorker, close: closeChildren } = openChildren()
  const closers = [closeChildren]
  const close = async () => {
    for (const end of closers.toReversed()) await end()
  }
  try {
    const service = await startService('/v1/malware/submit/file', { ASSAY_OUTBOUND_ALLOW: world })
    const engine = listTree(service.pid).find((pid) => readName(pid) === 'clamd')
    if (engine === undefined) throw new Error('The service runs no clamd of its own')
    const { config } = loadConfig({ ...process.env, ASSAY_DATA_DIR: service.dataDir })
    const stores = await openStores(config, 'command', makeLogger({ level: 'warn', region: config.region }))
    closers.push(stores.close)
    const hold = await openHold({ service, jobs: stores.jobs })
    closers.push(hold.close)
    const clamd = toSocket(join(service.dataDir, 'clamav'))
    const load = startWorker<SubmitJob | PingJob, LoadResult>(new URL('./jobs-load.ts', import.meta.url))
    const latency = startWorker<LatencyJob, LatencyResult>(new URL('./jobs-latency.ts', import.meta.url))
    const gate = startWorker<GateJob, GateResult>(new URL('./jobs-gate.ts', import.meta.url), [join(dir, 'gate')])
    const bare = await startServer(new URL('./bare-submit.ts', import.meta.url), [join(dir, 'bare'), clamd])
    const floor = startWorker<UploadJob, UploadResult>(new URL('./malware-load.ts', import.meta.url))
    const cpu: Cpu = () => {
      const parts = { service: 0, engine: 0, database: 0 }
      for (const pid of listTree(service.pid)) parts[toPart(pid)] += readCpuSeconds(pid)
      return {
        ...parts,
        gate: readCpuSeconds(gate.pid),
        'its database': readChildren(gate.pid),
        'bare server': readCpuSeconds(bare.pid),
        'the database of that': readChildren(bare.pid),
        load: readCpuSeconds(load.pid),
        'bare client': readCpuSeconds(floor.pid),
      }
    }
    const { pool } = stores.database
    return { service, clamd, pool, hold, load, latency, gate, bare, floor, cpu, whenIdle: () => whenIdle(cpu), close }
  } catch (error) {
    await close()
    throw error
  }
}

const readChildren = (pid: number) => sum(listTree(pid).map(readCpuSeconds)) - readCpuSeconds(pid)

function toPart(pid: number): 'service' | 'engine' | 'database' {
  const name = readName(pid)
  if (name === 'clamd') return 'engine'
  return name === 'postgres' ? 'database' : 'service'
}

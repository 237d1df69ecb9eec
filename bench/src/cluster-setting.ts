import { randomBytes } from 'node:crypto'
import pg from 'pg'
import { openStores } from '../../packages/server/src/compose/stores.ts'
import { loadConfig } from '../../packages/server/src/config/load-config.ts'
import { makeLogger } from '../../packages/server/src/runtime/logger.ts'
import { openTestPostgres } from '../../scripts/test-postgres.ts'
import { openTestS3 } from '../../scripts/test-s3.ts'
import { openChildren, type Service, whenIdle } from './children.ts'
import type { CurveJob, CurveResult } from './curve-load.ts'
import type { SubmitJob, LoadResult as SubmitResult } from './jobs-load.ts'
import type { UploadJob, UploadResult } from './malware-load.ts'
import { listTree, readCpuSeconds, readEndedCpuSeconds, readName } from './processes.ts'

/** `one`: everything in one process. `cluster`: 2 API and 2 worker nodes. `both`: 2 nodes with both roles. */
export type SideName = 'one' | 'cluster' | 'both'
/** `apis` are the nodes that take requests; `pool` is connected to the database. */
export type Side = { nodes: Service[]; apis: [Service, Service]; pool: pg.Pool }
export type Setting = Awaited<ReturnType<typeof openSetting>>

/** Image scanning is off, because its processes would only be idle. */
const sharedSettings = { ASSAY_NSFW_PROFILE: 'off' }

/**
 * The service three times on one machine: alone on its own database and disk, and as nodes over one PostgreSQL and
 * one S3, where each installation has a database and a prefix of its own. The caller closes it.
 */
export async function openSetting(postgresSettings: string[] = []) {
  const { startService, startWorker, close: closeChildren } = openChildren()
  const closers: (() => Promise<unknown>)[] = []
  const close = async () => {
    for (const end of closers.toReversed()) await end()
  }
  try {
    const postgres = await openTestPostgres(postgresSettings)
    closers.push(postgres.close)
    const s3 = await openTestS3()
    closers.push(s3.close, closeChildren)
    const start = (name: string, settings: Record<string, string>) =>
      startService('/v1/malware/scan/file', { ...sharedSettings, ...settings }, { name })

    const alone = await start('one', {})
    const { config } = loadConfig({ ...process.env, ASSAY_DATA_DIR: alone.dataDir })
    const stores = await openStores(config, 'command', makeLogger({ level: 'warn', region: config.region }))
    closers.push(stores.close)
    const [cluster, both] = await Promise.all([
      startNodes('cluster', ['api', 'api', 'worker', 'worker']),
      startNodes('both', ['api,worker', 'api,worker']),
    ])
    const one = { nodes: [alone], apis: [alone, alone] as [Service, Service], pool: stores.database.pool }
    const sides: Record<SideName, Side> = { one, cluster, both }

    async function startNodes(name: string, roles: string[]): Promise<Side> {
      const url = postgres.url.replace(/\/assay$/, `/${name}_nodes`)
      const first = new pg.Pool({ connectionString: postgres.url, max: 1 })
      await first.query(`create database ${name}_nodes`)
      await first.end()
      const shared = {
        ASSAY_DATABASE_URL: url,
        ASSAY_BLOBS: s3.toBlobsUrl(name),
        ASSAY_S3_ACCESS_KEY: s3.accessKey,
        ASSAY_S3_SECRET_KEY: s3.secretKey,
        ASSAY_MASTER_KEY: randomBytes(32).toString('hex'),
        ASSAY_METRICS_PORT: '0',
      }
      const startNode = (ASSAY_ROLES: string, i: number) => start(`${name}-${i}`, { ...shared, ASSAY_ROLES })
      const nodes = await Promise.all(roles.map(startNode))
      const pool = new pg.Pool({ connectionString: url, max: 2 })
      closers.push(() => pool.end())
      return { nodes, apis: nodes.slice(0, 2) as [Service, Service], pool }
    }

    const startTwice = <Job extends object, Result extends object>(file: URL) =>
      [startWorker<Job, Result>(file), startWorker<Job, Result>(file)] as const
    const scans = startTwice<UploadJob, UploadResult>(new URL('./malware-load.ts', import.meta.url))
    const submits = startTwice<SubmitJob, SubmitResult>(new URL('./jobs-load.ts', import.meta.url))
    const curves = startTwice<CurveJob, CurveResult>(new URL('./curve-load.ts', import.meta.url))
    const loads = new Set([...scans, ...submits, ...curves].map(({ pid }) => pid))
    const cpu = () => {
      const parts: Record<string, number> = { nodes: 0, engines: 0, databases: 0, s3: 0, load: 0 }
      for (const pid of listTree(process.pid)) {
        const part = loads.has(pid) ? 'load' : toPart(readName(pid))
        if (pid === process.pid) continue
        parts[part] = (parts[part] ?? 0) + readCpuSeconds(pid) + readEndedCpuSeconds(pid)
      }
      return parts
    }
    return { sides, adminUrl: postgres.adminUrl, scans, submits, curves, cpu, whenIdle: () => whenIdle(cpu), close }
  } catch (error) {
    await close()
    throw error
  }
}

function toPart(name: string): string {
  if (name === 'clamd') return 'engines'
  if (name.startsWith('swift-') || name === 'memcached') return 's3'
  return name === 'postgres' ? 'databases' : 'nodes'
}

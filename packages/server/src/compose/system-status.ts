import { mkdtempSync, rmSync } from 'node:fs'
import { statfs, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { basename, join, resolve } from 'node:path'
import type { Status } from '@assay/contract/admin'
import type { SystemDeps } from '../admin/system-handlers.ts'
import { type Config, loadConfig } from '../config/load-config.ts'
import { settingDefinitions } from '../config/settings.ts'
import type { ContentStore } from '../domain/ports/content-store.ts'
import type { EngineKind, EngineState } from '../domain/ports/engines.ts'
import type { Operations } from '../domain/ports/operations.ts'
import { OperatorMistake, Problem } from '../domain/problem.ts'
import type { Readiness } from '../domain/readiness.ts'
import type { Logger } from '../runtime/logger.ts'
import type { Metrics } from '../runtime/metrics.ts'
import { version } from '../runtime/version.ts'
import { writeBackup } from './backup/write-backup.ts'
import type { Engines } from './engines.ts'
import { toSignatureDirs } from './malware.ts'
import { type Look, makeSelfTest } from './self-test.ts'
import { makeSignatures } from './signatures.ts'
import type { Stores } from './stores.ts'

export type SystemStatusDeps = {
  stores: Pick<Stores, 'jobs' | 'deliveries' | 'scans' | 'nodes'>
  operations: Operations
  readiness: Readiness
  metrics: Metrics
  assess: Look
  contents: ContentStore
  listEngines(): { name: string; kind: EngineKind; state: EngineState | undefined }[]
  /** Undefined on a node without engines. */
  malware: Pick<Engines['malware'], 'listRefused' | 'updateSignatures'> | undefined
  roles: string[]
  log: Logger
}

const minuteMs = 60_000
const maxSignatureBytes = 512 * 1024 * 1024

/** What an operator sees of the service itself, and does to it. */
export function makeSystemStatus(config: Config, deps: SystemStatusDeps): Omit<SystemDeps, 'audit'> {
  const signatures = makeSignatures(config)
  const dirs = toSignatureDirs(config)
  return {
    getStatus: () => lookAtAll(config, deps),
    listSettings: () =>
      loadConfig(process.env).settings.map(({ name, env, text, origin, secret }) => ({
        ...{ name: env, value: text === undefined || text === '' ? null : secret ? '(hidden)' : text },
        ...{ origin, about: settingDefinitions[name].about, secret },
      })),
    about: { version, node_version: process.version, region: config.region, roles: deps.roles.join(', ') },
    async backup() {
      const directory = join(resolve(config.dataDir), 'backups', new Date().toISOString().replaceAll(':', '-'))
      const options = { withMasterKey: true, signal: new AbortController().signal, onTable: () => {} }
      const { tables, files } = await writeBackup(config, directory, options, deps.log)
      return { directory, rows: tables.reduce((sum, { rows }) => sum + rows, 0), files: Object.keys(files).length }
    },
    runSelfTest: makeSelfTest(deps),
    signatures: {
      list() {
        const { files, releasedAt } = signatures.list()
        const own = [dirs.own, dirs.official, dirs.yara]
        return {
          releasedAt,
          files: files.map((file) => ({ ...file, isOwn: own.some((dir) => file.path.startsWith(dir)) })),
        }
      },
      listRefused: () => deps.malware?.listRefused() ?? [],
      listModels: () =>
        deps
          .listEngines()
          .flatMap(({ kind, state }) =>
            kind !== 'image' || state === undefined ? [] : [{ name: state.version, precision: config.nsfwPrecision }],
          ),
      place: (name, bytes) => withFile(name, bytes, (path) => signatures.import(path)),
      remove(name) {
        try {
          signatures.remove(basename(name))
          return true
        } catch (error) {
          if (error instanceof OperatorMistake) return false
          throw error
        }
      },
      async update() {
        const updateNow = deps.malware?.updateSignatures
        if (updateNow === undefined) {
          return {
            state: 'unavailable',
            detail: 'Updates are disabled on this node (ASSAY_SIGNATURE_HOURS), or freshclam is not installed.',
          }
        }
        const { ok, said } = await updateNow()
        return ok
          ? { state: 'up-to-date', detail: 'The signatures are up to date.' }
          : { state: 'unavailable', detail: said }
      },
    },
  }
}

/** The file as it came, somewhere it can be tried, and gone again. */
async function withFile<T extends { path: string; bytes: number }>(
  name: string,
  bytes: AsyncIterable<Buffer>,
  use: (path: string) => Promise<T[]>,
): Promise<{ path: string; bytes: number }> {
  if (!/^\w[\w.-]{0,99}$/.test(name)) {
    throw new Problem({
      kind: 'conflict',
      detail: 'The file name must have up to 100 letters, digits, dots and hyphens.',
    })
  }
  const folder = mkdtempSync(join(tmpdir(), 'assay-signatures-'))
  try {
    const path = join(folder, basename(name))
    await writeFile(path, limit(bytes), { mode: 0o600 })
    const [placed] = await use(path)
    return { path: placed?.path ?? path, bytes: placed?.bytes ?? 0 }
  } catch (error) {
    if (!(error instanceof OperatorMistake)) throw error
    // The place on our disk is nobody's business.
    throw new Problem({ kind: 'conflict', detail: error.message.replaceAll(`${folder}/`, '') }, { cause: error })
  } finally {
    rmSync(folder, { recursive: true, force: true })
  }
}

async function* limit(bytes: AsyncIterable<Buffer>) {
  let count = 0
  for await (const chunk of bytes) {
    count += chunk.length
    if (count > maxSignatureBytes)
      throw new Problem({ kind: 'content-too-large', detail: 'The file is larger than 512 MB.' })
    yield chunk
  }
}

async function lookAtAll(config: Config, deps: SystemStatusDeps): Promise<Status> {
  const now = Date.now()
  const toAge = (since: Date | undefined) => (since === undefined ? 0 : Math.max(0, now - since.getTime()) / 1000)
  const [health, queue, webhooks, completed, database, disk, latency, nodes] = await Promise.all([
    deps.readiness.check(),
    deps.stores.jobs.countJobs(),
    deps.stores.deliveries.countDeliveries(),
    deps.stores.scans.countCompleted(new Date(now - minuteMs)),
    deps.operations.describeDatabase(),
    statfs(config.dataDir),
    deps.metrics.summariseRequests(),
    deps.stores.nodes.listNodes(),
  ])
  const checks = Object.entries(health.checks)
  return {
    status: health.status === 'ready' ? 'ok' : health.status === 'degraded' ? 'degraded' : 'down',
    parts: [
      ...checks
        .filter(([, state]) => state === 'ok')
        .map(([name]) => ({ name, status: 'ok' as const, detail: 'works' })),
      ...health.reasons.map((detail) => ({ name: 'attention', status: 'degraded' as const, detail })),
    ],
    engines: deps.listEngines().map(({ name, kind, state }) => ({
      name,
      kind,
      version: state?.version ?? null,
      signatures: state?.signatures ?? null,
      signatures_at: state?.signaturesAt?.toISOString() ?? null,
      is_up: state !== undefined,
    })),
    queue: {
      waiting: queue.waiting,
      running: queue.running,
      oldest_seconds: toAge(queue.oldestAt),
      settled_last_minute: completed,
    },
    webhooks: { waiting: webhooks.waiting, late_seconds: toAge(webhooks.oldestDueAt) },
    latency,
    disk: { data_bytes_free: disk.bavail * disk.bsize, data_bytes_total: disk.blocks * disk.bsize },
    database,
    nodes: nodes.map(({ name, roles, version, seenAt }) => ({
      ...{ id: name, roles: roles.join(', '), version, seen_at: seenAt.toISOString() },
    })),
    memory_bytes: process.memoryUsage.rss(),
    uptime_seconds: Math.round(process.uptime()),
  }
}

import { mkdirSync, mkdtempSync, rmSync } from 'node:fs'
import { statfs, writeFile } from 'node:fs/promises'
import { basename, join, resolve } from 'node:path'
import type { Status } from '@assay/contract/admin'
import type { SystemDeps } from '../admin/system-handlers.ts'
import { type Config, loadConfig, toShownValue } from '../config/load-config.ts'
import { settingDefinitions } from '../config/settings.ts'
import type { ContentStore } from '../domain/ports/content-store.ts'
import type { Operations } from '../domain/ports/operations.ts'
import { OperatorMistake, Problem } from '../domain/problem.ts'
import type { Readiness } from '../domain/readiness.ts'
import type { Logger } from '../runtime/logger.ts'
import type { Metrics } from '../runtime/metrics.ts'
import { version } from '../runtime/process.ts'
import { writeBackup } from './backup/write-backup.ts'
import { toExternalStatus } from './external-engines.ts'
import { type EngineStatus, readQueues } from './monitoring.ts'
import type { ScanningParts } from './scanning.ts'
import { makeSignatures } from './signatures.ts'
import type { StorageParts } from './storage.ts'

export type SystemStatusDeps = {
  storage: StorageParts
  scanning: ScanningParts
  operations: Operations
  readiness: Readiness
  contents: ContentStore
  listEngines(): EngineStatus[]
  listListeners(): Promise<Status['listeners']>
  roles: string[]
  metrics: Metrics
  log: Logger
}

const maxSignatureBytes = 512 * 1024 * 1024

/**
 * Makes what the operator pages of the console show of the service, and their actions: backup, self-test, signatures.
 */
export function makeSystemStatus(config: Config, deps: SystemStatusDeps): Omit<SystemDeps, 'audit'> {
  return {
    getStatus: () => getStatus(config, deps),
    listSettings: () =>
      loadConfig(process.env).settings.map((setting) => ({
        name: setting.env,
        value: toShownValue(setting),
        origin: setting.origin,
        about: settingDefinitions[setting.name].about,
        secret: setting.secret,
      })),
    about: { version, node_version: process.version, region: config.region, roles: deps.roles.join(', ') },
    async backup() {
      const directory = join(resolve(config.dataDir), 'backups', new Date().toISOString().replaceAll(':', '-'))
      const options = { withMasterKey: false, signal: new AbortController().signal, onTable: () => {} }
      const { tables, files } = await writeBackup(config, directory, options, deps.log)
      return { directory, rows: tables.reduce((sum, { rows }) => sum + rows, 0), files: Object.keys(files).length }
    },
    runSelfTest: () => runSelfTest(deps),
    signatures: makeSignatureAdmin(config, deps),
  }
}

async function getStatus(config: Config, deps: SystemStatusDeps) {
  const { storage, operations, readiness, metrics, listEngines } = deps
  const engines = listEngines()
  const [health, queues, database, disk, latency, nodes, listeners] = await Promise.all([
    readiness.check(),
    readQueues(storage),
    operations.describeDatabase(),
    statfs(config.dataDir),
    metrics.summariseRequests(),
    storage.nodes.listNodes(),
    deps.listListeners(),
  ])
  const healthy = Object.entries(health.checks).filter(([, state]) => state !== 'fault')
  const status: Status = {
    status: health.status === 'ready' ? 'ok' : health.status === 'degraded' ? 'degraded' : 'down',
    parts: [
      ...healthy.map(([name, state]) => ({
        name,
        status: 'ok' as const,
        detail: state.replace(/^ok\.? ?/, '') || 'works',
      })),
      ...health.reasons.map((detail) => ({ name: 'attention', status: 'degraded' as const, detail })),
    ],
    engines: engines
      .filter(({ external }) => external === undefined)
      .map(({ name, kind, state }) => ({
        name,
        kind,
        version: state?.version ?? null,
        signatures: state?.signatures ?? null,
        signatures_at: state?.signaturesAt?.toISOString() ?? null,
        is_up: state !== undefined,
      })),
    ...toExternalStatus(engines, deps.scanning.engines?.malware.external),
    listeners,
    queue: queues.scans,
    webhooks: queues.webhooks,
    latency,
    disk: { data_bytes_free: disk.bavail * disk.bsize, data_bytes_total: disk.blocks * disk.bsize },
    database,
    nodes: nodes.map(({ name, roles, version, seenAt }) => ({
      id: name,
      roles: roles.join(', '),
      version,
      seen_at: seenAt.toISOString(),
    })),
    memory_bytes: process.memoryUsage.rss(),
    uptime_seconds: Math.round(process.uptime()),
  }
  return status
}

function makeSignatureAdmin(
  config: Config,
  { storage, scanning, listEngines }: SystemStatusDeps,
): SystemDeps['signatures'] {
  const { malware, sharedSignatures } = scanning.engines ?? {}
  const uploads = join(resolve(config.dataDir), 'signatures', 'uploads')
  // Uploads of a service that was killed.
  rmSync(uploads, { recursive: true, force: true })
  const signatures = makeSignatures(config, {
    store: storage.signatures,
    atomically: (work) => storage.auth.audit.atomically(work),
    copyFiles: async () => sharedSignatures?.refresh(),
  })
  return {
    list: signatures.list,
    findFault: () => sharedSignatures?.findFault() ?? malware?.findSignatureFault(),
    listRefused: () => malware?.listRefused() ?? [],
    listModels: () =>
      listEngines().flatMap(({ kind, state }) =>
        kind !== 'image' || state === undefined ? [] : [{ name: state.version, precision: config.nsfwPrecision }],
      ),
    place: (name, bytes, note) => withUpload(uploads, { name, bytes }, (path) => signatures.import(path, note)),
    async remove(name, note) {
      try {
        await signatures.remove(name, note)
        return true
      } catch (error) {
        if (error instanceof OperatorMistake) return false
        throw error
      }
    },
    async update() {
      if (malware?.updates === undefined) {
        return {
          state: 'unavailable',
          detail: 'Updates are disabled on this node (ASSAY_SIGNATURE_HOURS), or freshclam is not installed.',
        }
      }
      const { ok, message } = await malware.updates.runNow()
      return ok
        ? { state: 'up-to-date', detail: 'The signatures are up to date.' }
        : { state: 'failed', detail: message }
    },
  }
}

/** Stores an upload in a file below `uploads` for as long as `use` runs. */
async function withUpload<T extends { path: string; bytes: number }>(
  uploads: string,
  { name, bytes }: { name: string; bytes: AsyncIterable<Buffer> },
  use: (path: string) => Promise<T[]>,
): Promise<{ path: string; bytes: number }> {
  if (!/^\w[\w.-]{0,99}$/.test(name)) {
    throw new Problem({
      kind: 'conflict',
      detail: 'The file name must have up to 100 letters, digits, dots and hyphens.',
    })
  }
  mkdirSync(uploads, { recursive: true, mode: 0o700 })
  const folder = mkdtempSync(`${uploads}/`)
  try {
    const path = join(folder, basename(name))
    await writeFile(path, limitBytes(bytes), { mode: 0o600 })
    const [placed] = await use(path)
    return { path: placed?.path ?? path, bytes: placed?.bytes ?? 0 }
  } catch (error) {
    if (!(error instanceof OperatorMistake)) throw error
    // The message names the temporary path, which means nothing to the person who uploaded the file.
    throw new Problem({ kind: 'conflict', detail: error.message.replaceAll(`${folder}/`, '') }, { cause: error })
  } finally {
    rmSync(folder, { recursive: true, force: true })
  }
}

async function* limitBytes(bytes: AsyncIterable<Buffer>) {
  let count = 0
  for await (const chunk of bytes) {
    count += chunk.length
    if (count > maxSignatureBytes)
      throw new Problem({ kind: 'content-too-large', detail: 'The file is larger than 512 MB.' })
    yield chunk
  }
}

/** The EICAR test file, in two pieces so that scanners do not report this source file. */
const eicar = ['X5O!P%@AP[4\\PZX54(P^)7CC)7}$EICAR-STANDARD', '-ANTIVIRUS-TEST-FILE!$H+H*'].join('')

/** A PNG of a grey square. */
const picture = Buffer.from(
  'iVBORw0KGgoAAAANSUhEUgAAAEAAAABACAMAAACdt4HsAAAAA1BMVEWIiIhYZW6zAAAACXBIWXMAAAPoAAAD6AG1e1JrAAAAG0lEQVRYw+3BgQAAAADDoPlT3+AEVQEAAAB8AxBAAAEZszF2AAAAAElFTkSuQmCC',
  'base64',
)

/**
 * Scans known content with the engines of this node, or of its workers, and compares the verdicts with the known ones.
 */
async function runSelfTest({ scanning, contents }: Pick<SystemStatusDeps, 'scanning' | 'contents'>) {
  const assess = scanning.engines?.assess ?? scanning.liveScanner.scanContent
  const check = async (name: string, bytes: Buffer, kind: 'malware' | 'nsfw_image', expected: string) => {
    const writer = contents.newWriter()
    try {
      await writer.write(Buffer.from(bytes))
      const content = await writer.finish()
      const options = { kind, contentName: null, flagsSexy: true, accountId: null, isTest: false }
      const { status, signals } = await assess(content, options)
      return { name, ok: status === expected, detail: [status, ...(signals ?? [])].join(' ') }
    } catch (error) {
      return { name, ok: false, detail: (error as Error).message }
    } finally {
      await writer.abort()
    }
  }
  return [
    await check('EICAR is found', Buffer.from(eicar), 'malware', 'threat'),
    await check('harmless text is clean', Buffer.from('A harmless line of text.\n'), 'malware', 'clean'),
    await check('a grey picture is clean', picture, 'nsfw_image', 'clean'),
  ]
}

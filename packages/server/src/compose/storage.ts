import { join, resolve } from 'node:path'
import { openDiskSpace } from '../blobs/disk-space.ts'
import { makeDiskJobContents } from '../blobs/job-contents.ts'
import { checkStore, openS3JobContents } from '../blobs/s3/s3-job-contents.ts'
import type { Config } from '../config/load-config.ts'
import { makeAdmissionGate, makeIdempotencyStore } from '../database/admission-gate.ts'
import { makeBalanceOpener } from '../database/balances.ts'
import { isSatellite } from '../database/regions.ts'
import { makeRecentCallers } from '../domain/accounts/admission.ts'
import type { JobContents } from '../domain/ports/content-store.ts'
import type { Check } from '../domain/readiness.ts'
import type { Closers } from '../runtime/closers.ts'
import type { Logger } from '../runtime/logger.ts'
import type { Metrics } from '../runtime/metrics.ts'
import { toServiceActor } from '../runtime/process.ts'
import type { CleanupTask } from '../workers/periodic-work.ts'
import { divideContentMemory, findPictureMemory, openContents } from './content-memory.ts'
import { newHomeCheck, observeDatabase, observeHome } from './monitoring.ts'
import type { Stores } from './stores.ts'

type Deps = { stores: Stores; metrics: Metrics; log: Logger; closers: Closers }

/** Opens everything that holds state: the stores on the database, the admission gate and the content. */
export async function openStorage(config: Config, { stores, metrics, log, closers }: Deps) {
  const { database } = stores
  observeDatabase(metrics, database)
  // A worker does not know ASSAY_BOOTSTRAP_KEY, so only an API node may create the first account.
  const firstAccount = config.roles.api ? await registerFirstAccount(config, stores) : undefined
  const content = await openContentStorage(config, { sealing: stores.sealing, metrics, log, closers })
  const isFollower = await isSatellite(database.pool)
  const openBalances = isFollower ? makeBalanceOpener(database.pool) : undefined
  if (isFollower) observeHome(metrics, database)
  const recentCallers = makeRecentCallers()
  const gate = makeAdmissionGate({
    pool: database.pool,
    observeBatch: metrics.observeBatch,
    openBalances,
    isUnavailable: database.watch.isUnavailable,
    onOutage: database.watch.reportError,
  })
  return {
    ...stores,
    ...content,
    idempotency: makeIdempotencyStore(database),
    gate: recentCallers.watch(gate),
    recentCallers,
    openBalances,
    firstAccount,
    checks: [...content.checks, ...(isFollower ? [newHomeCheck(database)] : [])],
  }
}

export type StorageParts = Awaited<ReturnType<typeof openStorage>>

const registerFirstAccount = (config: Config, { registration, auth: { audit } }: Stores) =>
  audit.atomically(async () => {
    const registered = await registration.registerFirst({
      name: 'first account',
      plan: 'unlimited',
      ...(config.bootstrapKey === undefined ? {} : { apiKey: config.bootstrapKey }),
      ...(config.bootstrapWebhookSecret === undefined ? {} : { webhookSecret: config.bootstrapWebhookSecret }),
    })
    if (registered !== undefined) {
      const { id, name } = registered.account
      await audit.note({ actor: toServiceActor(), action: 'account.create', target: id, accountId: id, detail: name })
    }
    return registered
  })

const megabyte = 1024 * 1024
/** No request takes longer than a day, so an older unfinished multipart upload has no owner. */
const staleUploadMs = 86_400_000

/** Opens the stores for content, within limits on memory and disk: for running requests, and for background jobs. */
async function openContentStorage(
  config: Config,
  { sealing, metrics, log, closers }: Omit<Deps, 'stores'> & Pick<Stores, 'sealing'>,
) {
  const dataDir = resolve(config.dataDir)
  const { master, installationId } = await sealing.getKey()
  const limits = {
    memoryBytes: divideContentMemory(config).ofMain,
    pictureBytes: findPictureMemory(config),
    recentHeads: config.verdictCache,
  }
  const { contents, memory, disk, threads } = await openContents(config, limits, { metrics, closers })
  const jobDisk = await openDiskSpace({
    dir: dataDir,
    reserveBytes: config.diskReserve * megabyte,
    budget: findJobBudget(config),
  })
  metrics.gauge('assay_disk_free_bytes', 'Free bytes on the disk of the data directory.', disk.countFree)

  const bounds = { memory, disk: jobDisk, threads }
  if (config.blobs.at === 'disk') {
    const jobContents: JobContents = makeDiskJobContents({ dir: join(dataDir, 'jobs'), master, ...bounds })
    return { contents, jobContents, jobDisk, checks: [], cleanupTasks: [] }
  }
  const store = await openS3JobContents({
    settings: { ...config.blobs, credentials: findS3Credentials(config) },
    master,
    installationId,
    stagingDir: join(dataDir, 'staging'),
    observe: newS3Timer(metrics),
    log,
    ...bounds,
  })
  closers.add(store.close)
  await store.requireUsable()
  metrics.gauge('assay_s3_parts_waiting', 'Parts of uploads that wait to be sent to S3.', store.countWaiting)
  // Not vital: synchronous scans and small submits work without the store.
  const check: Check = { name: 'content store', vital: false, findFault: store.findFault }
  const abortStaleUploads: CleanupTask = {
    name: 'unfinished uploads to the content store',
    sweep: () => store.abortUploads(staleUploadMs),
  }
  return { contents, jobContents: store.contents, jobDisk, checks: [check], cleanupTasks: [abortStaleUploads] }
}

/** Tries what background jobs need of S3, and returns a sentence for each fault. Undefined where content is on disk. */
export async function checkContentStore(config: Config): Promise<string[] | undefined> {
  if (config.blobs.at === 'disk') return undefined
  return checkStore({ ...config.blobs, credentials: findS3Credentials(config) })
}

/** ASSAY_JOB_CONTENT_MB limits job content on this disk only; S3 has its own quotas. */
const findJobBudget = ({ jobContent, blobs, dataDir }: Config) =>
  jobContent === undefined || blobs.at !== 'disk'
    ? undefined
    : { dir: join(resolve(dataDir), 'jobs'), bytes: jobContent * megabyte }

const newS3Timer = (metrics: Metrics) =>
  metrics.timer(
    'assay_s3_call_duration_seconds',
    'Duration of each attempt of a call to S3. Outcomes: ok, missing, refused, failed, lost.',
    ['call', 'outcome'],
  )

const findS3Credentials = ({ s3AccessKey, s3SecretKey }: Config) =>
  s3AccessKey === undefined || s3SecretKey === undefined
    ? undefined
    : { accessKeyId: s3AccessKey, secretAccessKey: s3SecretKey }

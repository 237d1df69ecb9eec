import { availableParallelism } from 'node:os'
import { v7 as newUuid } from 'uuid'
import type { Config } from '../config/load-config.ts'
import { shortenFutureWaits } from '../database/future-times.ts'
import { makeListStore } from '../database/hash-list-store.ts'
import { makeJobStore } from '../database/job-store.ts'
import { makeRejectedRequestStore } from '../database/scan-store.ts'
import { makeSendAlert } from '../domain/alerts.ts'
import { makeSignatureHashes } from '../domain/knowledge/import-hashes.ts'
import type { JobContents } from '../domain/ports/content-store.ts'
import type { NextDeliveryState } from '../domain/ports/delivery-store.ts'
import type { JobStore, RemoteScanStore } from '../domain/ports/job-store.ts'
import { listQueues, makeRunJob } from '../domain/scans/jobs.ts'
import { makeDeliver } from '../domain/webhooks/deliver.ts'
import { makeMailSender } from '../outbound/senders.ts'
import { readActivityTotals } from '../runtime/activity-totals.ts'
import type { Closers } from '../runtime/closers.ts'
import type { Logger } from '../runtime/logger.ts'
import type { Metrics } from '../runtime/metrics.ts'
import { openActivityRecorder } from '../workers/activity-recorder.ts'
import { openDeliveryWorker } from '../workers/delivery-worker.ts'
import { type CleanupTask, openAlertWorker, openSweeper } from '../workers/periodic-work.ts'
import { openRevisionWorker } from '../workers/revision-worker.ts'
import { openScanWorker } from '../workers/scan-workers.ts'
import { observeQueues } from './monitoring.ts'
import type { ScanningParts } from './scanning.ts'
import { openSourceUpdates } from './sources/open-sources.ts'
import type { StorageParts } from './storage.ts'

type Deps = {
  storage: StorageParts
  scanning: ScanningParts
  /** Time that running jobs may still take while the service stops. */
  countDrainMs(): number
  metrics: Metrics
  log: Logger
  closers: Closers
}

/** Opens the work that no request waits for: background scans, webhook deliveries and cleanup. */
export async function openBackground(config: Config, deps: Deps) {
  const { storage, scanning, countDrainMs, metrics, log, closers } = deps
  const { isOutage } = storage.database.watch
  const workers = openWorkers(config, deps)
  closers.add(() => workers.close(countDrainMs()))
  observeQueues(metrics, { jobs: workers.jobs, deliveries: storage.deliveries })
  const sweeper = await openSweeper({
    cleanupTasks: listCleanupTasks(config, deps, workers),
    log,
    isOutage,
  })
  closers.add(sweeper.close)
  const recorder = await openActivityRecorder({
    store: storage.activity,
    nodeId: newUuid(),
    clock: storage.database.clock,
    readTotals: async () => readActivityTotals(await metrics.collect()),
    readQueue: workers.jobs.countJobs,
    log,
    isOutage,
  })
  closers.add(recorder.close)
  const sendAlert = makeSendAlert({
    mail: config.smtpUrl && makeMailSender({ url: config.smtpUrl, from: config.smtpFrom, log }),
    sender: scanning.outbound.sender,
    listWebhookSecrets: storage.accounts.listWebhookSecrets,
    clock: storage.database.clock,
    region: config.region,
  })
  // Nodes of every role send alerts, because those without engines must tell that no worker is left.
  const alertWorker = openAlertWorker({ store: storage.alerts, send: sendAlert, log, isOutage })
  closers.add(alertWorker.close)
  const sourceUpdates = openSourceUpdates(config, { storage, scanning, metrics, log })
  closers.add(sourceUpdates.close)
  return { ...workers, recordActivity: recorder.record, sendAlert }
}

/** Many more jobs than cores: a small scan spends most of its time waiting for the engine and the database. */
export const jobsPerCore = 64

const abandonedAtOnce = 100
const abandonedLeaseMs = 60_000

/** Opens the workers of a node with the role `worker`. On other nodes jobs can be queued and expired, but are not run. */
function openWorkers(config: Config, { storage, scanning, metrics, log }: Deps) {
  const { database, jobContents, deliveries } = storage
  const { scanner, listClaimedKinds, outbound, remoteScans } = scanning
  const { resultWaiters, notifications } = remoteScans
  const { isOutage } = database.watch
  const jobs = makeJobStore({
    ...database,
    listQueues: () => listQueues(listClaimedKinds(), jobContents.storeIds),
  })
  const { run, giveUp, countCompleting } = makeRunJob({
    jobs,
    contents: jobContents,
    scanner,
    clock: database.clock,
    observeVerdict: metrics.countVerdict,
    reportFailure: (error) => log.error({ err: error }, 'a background scan failed'),
    onCompleted(scanId, isCalledBack) {
      resultWaiters.notify(scanId)
      notifications.send('completed', scanId)
      if (isCalledBack) workers?.pokeDeliveries()
    },
  })
  const workers = config.roles.worker ? startWorkers() : undefined

  return {
    jobs,
    /** Call after a job is queued: wakes the worker of this process, or those of other nodes. */
    onQueued: workers?.pokeScans ?? (() => notifications.send('jobs')),
    /** Call after a delivery is made due. Workers of other nodes find it when they poll. */
    onReplayed: () => workers?.pokeDeliveries(),
    /** Completes jobs that have waited for that time without being claimed; returns how many. */
    async giveUpAbandoned(ageMs: number): Promise<number> {
      const abandoned = await jobs.claimAbandoned(ageMs, abandonedAtOnce, abandonedLeaseMs)
      for (const job of abandoned) await giveUp(job)
      return abandoned.length
    },
    stopClaiming: () => workers?.stopClaiming(),
    close: async (withinMs: number) => workers?.close(withinMs),
  }

  function startWorkers() {
    const remoteScanWorker = remoteScans.openWorker(scanner)
    const deliver = makeDeliver({
      sender: outbound.sender,
      store: deliveries,
      clock: database.clock,
      retryMs: config.webhookRetries,
    })
    const deliveryWorker = openDeliveryWorker({
      store: deliveries,
      deliver: async (claimed) => {
        const result = await deliver(claimed)
        if (result.isRecorded) metrics.countWebhookAttempt(toOutcome(result.outcome))
        return result
      },
      log,
      isOutage,
    })
    const scanWorker = openScanWorker({
      jobs,
      run,
      countCompleting,
      concurrency: jobsPerCore * availableParallelism(),
      log,
      isOutage,
      ...(remoteScanWorker === undefined ? {} : { countOthers: remoteScanWorker.countRunning }),
    })
    const revisionWorker = openRevisionWorker({
      store: storage.revisions,
      readSignatureFile: makeSignatureHashes({
        signatures: storage.signatures,
        hashLists: storage.hashLists,
        isUsedInScans: config.clamd === undefined,
      }),
      onDeliveries: deliveryWorker.poke,
      log,
      isOutage,
    })
    notifications.on('hash-lists', revisionWorker.poke)
    notifications.on('jobs', scanWorker.poke)
    return {
      pokeScans: scanWorker.poke,
      pokeDeliveries: deliveryWorker.poke,
      stopClaiming() {
        remoteScanWorker?.stop()
        scanWorker.stop()
      },
      async close(withinMs: number) {
        const workers = [remoteScanWorker?.close(withinMs), scanWorker.close(withinMs), revisionWorker.close(withinMs)]
        await Promise.all(workers)
        await deliveryWorker.close()
      },
    }
  }
}

const toOutcome = ({ state }: NextDeliveryState) =>
  state === 'delivered' ? 'delivered' : state === 'pending' ? 'retried' : 'failed'

export type BackgroundParts = Awaited<ReturnType<typeof openBackground>>

const dayMs = 86_400_000
/** Content is stored before its job is recorded, so younger content may belong to a submit that still runs. */
const orphanMs = 15 * 60_000
/** Browsers keep the cookie of a device at most this long. */
const deviceDays = 400
/** The status page shows one day. */
const activityDays = 2
/** The usage page shows 30 days. */
const rejectedRequestDays = 40

/**
 * Lists what the sweeper does every minute: deleting what has expired or lost its owner, and preparing partitions. Ages
 * are lengths: the database, or the storage of the content, says what is that old.
 */
function listCleanupTasks(
  { resultDays }: Config,
  { storage, scanning }: Deps,
  workers: ReturnType<typeof openWorkers>,
): CleanupTask[] {
  const { remoteScans } = scanning.remoteScans
  const { database, contents, jobContents, auth, scans, deliveries, idempotency, nodes, openBalances } = storage
  const lists = makeListStore(database)
  const rejectedRequests = makeRejectedRequestStore(database)
  const task = (name: string, sweep: () => Promise<number>): CleanupTask => ({ name, sweep })
  return [
    task('waits in the future, after the clock of the database was set back', () => shortenFutureWaits(database)),
    task('expired sessions and links', () =>
      auth.members.deleteExpired({ devicesMs: deviceDays * dayMs, failuresMs: dayMs }),
    ),
    task('expired entries of the allow and block lists', lists.deleteExpired),
    task('hashes of removed lists and abandoned imports', storage.hashLists.deleteRemoved),
    task('old counts of rejected requests', () => rejectedRequests.deleteOld(rejectedRequestDays)),
    task('activity older than two days', () => storage.activity.deleteOld(activityDays)),
    task('alerts that could not be sent within a day', storage.alerts.deleteOldMessages),
    task('partitions for future results', () => scans.createPartitions(resultDays).then(() => 0)),
    task('content of ended processes', contents.sweep),
    task('content of deleted jobs', () => sweepOrphans({ jobContents, jobs: workers.jobs, remoteScans })),
    task('remote scans without a waiting client', () => sweepRemoteScans({ remoteScans, jobContents })),
    task('nodes silent for an hour', nodes.deleteSilent),
    task('jobs that no worker claimed within a day', () => workers.giveUpAbandoned(dayMs)),
    task('results older than ASSAY_RESULT_DAYS', () => scans.deleteCompleted(resultDays)),
    task('revisions older than ASSAY_RESULT_DAYS', () => storage.revisions.deleteOld(resultDays)),
    task('refunds older than ASSAY_RESULT_DAYS', () => scans.foldLedger(resultDays)),
    task('deliveries older than ASSAY_RESULT_DAYS', () => deliveries.deleteOld(resultDays * dayMs)),
    ...(openBalances === undefined
      ? []
      : [task('balances of accounts from the home region', async () => Number(await openBalances()))]),
    task('idempotency keys older than a day', () => idempotency.deleteIdempotencyKeys(dayMs)),
    ...storage.cleanupTasks,
  ]
}

/** Deletes remote scans whose node stopped waiting, such as one that was killed, with their content. */
export async function sweepRemoteScans(deps: {
  remoteScans: RemoteScanStore
  jobContents: JobContents
}): Promise<number> {
  const sources = await deps.remoteScans.deleteExpired()
  for (const source of sources) if (source.at !== 'url') await deps.jobContents.remove(source)
  return sources.length
}

/** Deletes stored content that neither a job nor a remote scan refers to. */
async function sweepOrphans({
  jobContents,
  jobs,
  remoteScans,
}: {
  jobContents: JobContents
  jobs: JobStore
  remoteScans: RemoteScanStore
}): Promise<number> {
  const keys = await jobContents.listKeys(orphanMs)
  if (keys.length === 0) return 0
  const needed = new Set([...(await jobs.listNeeded(keys)), ...(await remoteScans.listNeeded(keys))])
  const orphans = keys.filter((key) => !needed.has(key))
  for (const key of orphans) await jobContents.remove({ at: 'storage', key })
  return orphans.length
}

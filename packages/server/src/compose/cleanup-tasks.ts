import type { Config } from '../config/load-config.ts'
import { makeListStore } from '../database/console/list-store.ts'
import { makeRejectedRequestStore } from '../database/console/scan-history.ts'
import { shortenFutureWaits } from '../database/future-times.ts'
import type { JobContents } from '../domain/ports/content-store.ts'
import type { JobStore } from '../domain/ports/job-store.ts'
import type { RemoteScanStore } from '../domain/ports/remote-scan-store.ts'
import type { CleanupTask } from '../workers/sweeper.ts'
import type { StorageParts } from './storage.ts'

type Deps = {
  storage: StorageParts
  remoteScans: RemoteScanStore
  workers: { jobs: JobStore; giveUpAbandoned(ageMs: number): Promise<number> }
}

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
export function listCleanupTasks({ resultDays }: Config, { storage, remoteScans, workers }: Deps): CleanupTask[] {
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

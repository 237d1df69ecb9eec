import type { IdempotencyStore } from '../domain/ports/admission-gate.ts'
import type { JobContents } from '../domain/ports/content-store.ts'
import type { DeliveryStore } from '../domain/ports/delivery-store.ts'
import type { JobStore } from '../domain/ports/job-store.ts'
import type { NodeStore } from '../domain/ports/node-store.ts'
import type { RemoteScanStore } from '../domain/ports/remote-scan-store.ts'
import type { ScanStore } from '../domain/ports/scan-store.ts'
import { systemClock } from '../runtime/clock.ts'
import type { CleanupTask } from '../workers/sweeper.ts'

type Deps = {
  contents: { sweep(): Promise<number> }
  jobContents: JobContents
  jobs: JobStore
  remoteScans: RemoteScanStore
  nodes: NodeStore
  scans: ScanStore
  deliveries: DeliveryStore
  repeats: IdempotencyStore
  giveUpAbandoned(before: Date): Promise<number>
  resultDays: number
  /** Where accounts come from another region. */
  openBalances: (() => Promise<boolean>) | undefined
}

const dayMs = 86_400_000
/** Content is stored before its job is recorded: what is younger may belong to one that is on its way. */
const orphanMs = 15 * 60_000

/** What goes by itself when it is old enough, or when nobody needs it any more. */
export function listCleanupTasks(deps: Deps): CleanupTask[] {
  const ago = (ms: number) => new Date(systemClock.now().getTime() - ms)
  const { openBalances } = deps
  const retention = () => ago(deps.resultDays * dayMs)
  return [
    { name: 'room for results to come', sweep: () => deps.scans.prepare(deps.resultDays).then(() => 0) },
    { name: 'content of processes that ended', sweep: deps.contents.sweep },
    { name: 'content of jobs that are not there', sweep: () => sweepOrphans(deps, ago(orphanMs)) },
    { name: 'remote scans that nobody waits for', sweep: () => sweepRemoteScans(deps) },
    { name: 'nodes that have been silent for an hour', sweep: deps.nodes.deleteSilent },
    { name: 'jobs that nobody could do within a day', sweep: () => deps.giveUpAbandoned(ago(dayMs)) },
    { name: 'results older than ASSAY_RESULT_DAYS', sweep: () => deps.scans.deleteCompleted(deps.resultDays) },
    { name: 'debits older than ASSAY_RESULT_DAYS', sweep: () => deps.scans.foldLedger(deps.resultDays) },
    { name: 'deliveries older than ASSAY_RESULT_DAYS', sweep: () => deps.deliveries.deleteOld(retention()) },
    ...(openBalances === undefined
      ? []
      : [
          { name: 'books of accounts that came from the home region', sweep: async () => Number(await openBalances()) },
        ]),
    { name: 'idempotency keys older than a day', sweep: () => deps.repeats.deleteIdempotency(ago(dayMs)) },
  ]
}

/** What a node that was killed has asked for. */
export async function sweepRemoteScans({
  remoteScans,
  jobContents,
}: Pick<Deps, 'remoteScans' | 'jobContents'>): Promise<number> {
  const sources = await remoteScans.deleteExpired()
  for (const source of sources) if (source.at !== 'url') await jobContents.remove(source)
  return sources.length
}

async function sweepOrphans({ jobContents, jobs, remoteScans }: Deps, before: Date): Promise<number> {
  const keys = await jobContents.listKeys(before)
  if (keys.length === 0) return 0
  const needed = new Set([...(await jobs.listNeeded(keys)), ...(await remoteScans.listNeeded(keys))])
  const orphans = keys.filter((key) => !needed.has(key))
  for (const key of orphans) await jobContents.remove({ at: 'storage', key })
  return orphans.length
}

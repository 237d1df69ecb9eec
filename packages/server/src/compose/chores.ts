import type { IdempotencyStore } from '../domain/ports/admission-gate.ts'
import type { JobContents } from '../domain/ports/content-store.ts'
import type { DeliveryStore } from '../domain/ports/delivery-store.ts'
import type { JobStore } from '../domain/ports/job-store.ts'
import type { ScanStore } from '../domain/ports/scan-store.ts'
import { systemClock } from '../runtime/clock.ts'
import type { Chore } from '../workers/sweeper.ts'

type Deps = {
  contents: { sweep(): Promise<number> }
  jobContents: JobContents
  jobs: JobStore
  scans: ScanStore
  deliveries: DeliveryStore
  repeats: IdempotencyStore
  giveUpAbandoned(before: Date): Promise<number>
  resultDays: number
}

const dayMs = 86_400_000
/** Content is stored before its job is recorded: what is younger may belong to one that is on its way. */
const orphanMs = 15 * 60_000

/** What goes by itself when it is old enough, or when nobody needs it any more. */
export function listChores(deps: Deps): Chore[] {
  const ago = (ms: number) => new Date(systemClock.now().getTime() - ms)
  const retention = () => ago(deps.resultDays * dayMs)
  return [
    { name: 'room for results to come', sweep: () => deps.scans.prepare(deps.resultDays).then(() => 0) },
    { name: 'content of processes that ended', sweep: deps.contents.sweep },
    { name: 'content of jobs that are not there', sweep: () => sweepOrphans(deps, ago(orphanMs)) },
    { name: 'jobs that nobody could do within a day', sweep: () => deps.giveUpAbandoned(ago(dayMs)) },
    { name: 'results older than ASSAY_RESULT_DAYS', sweep: () => deps.scans.deleteSettled(deps.resultDays) },
    { name: 'debits older than ASSAY_RESULT_DAYS', sweep: () => deps.scans.foldLedger(deps.resultDays) },
    { name: 'deliveries older than ASSAY_RESULT_DAYS', sweep: () => deps.deliveries.deleteOld(retention()) },
    { name: 'idempotency keys older than a day', sweep: () => deps.repeats.deleteIdempotency(ago(dayMs)) },
  ]
}

async function sweepOrphans({ jobContents, jobs }: Deps, before: Date): Promise<number> {
  const keys = await jobContents.listKeys(before)
  if (keys.length === 0) return 0
  const needed = new Set(await jobs.listNeeded(keys))
  const orphans = keys.filter((key) => !needed.has(key))
  for (const key of orphans) await jobContents.remove({ at: 'storage', key })
  return orphans.length
}

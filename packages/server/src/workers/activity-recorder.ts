import type { ScanKind } from '@assay/contract'
import type { Clock } from '../domain/clock.ts'
import type { ActivityStore, NodeActivity, NodeSample, RejectedRequestStore } from '../domain/ports/scan-store.ts'
import { type ActivityTotals, toTotalKey } from '../runtime/activity-totals.ts'
import { makeOneAtATime } from '../runtime/closers.ts'
import type { Logger } from '../runtime/logger.ts'

const minuteMs = 60_000
/** The write follows the end of a minute by this much, so that it surely lies in the next one. */
const marginMs = 100

type Deps = {
  store: Pick<ActivityStore, 'record'>
  nodeId: string
  clock: Clock
  readTotals(): Promise<ActivityTotals>
  readQueue(): Promise<NodeSample['queue']>
  log: Logger
  /** Whether the database is unreachable; the watch of the database logs that once for all parts. */
  isOutage?(error: unknown): boolean
}

/**
 * Records the activity of this process at the end of each minute. Each write adds what the metrics have counted since
 * the one before, to the minute in which the middle of that time lies. After a failed write, the next one has it all.
 */
export async function openActivityRecorder(deps: Deps) {
  let before = await deps.readTotals()
  let writtenAtMs = performance.now()
  let timer: NodeJS.Timeout | undefined

  const record = makeOneAtATime(async () => {
    const totals = await deps.readTotals()
    const sample = { memoryBytes: totals.memoryBytes, queue: await deps.readQueue() }
    const nowMs = performance.now()
    await deps.store.record(deps.nodeId, { ...toActivity(totals, before), ...sample }, (nowMs - writtenAtMs) / 2)
    before = totals
    writtenAtMs = nowMs
  })

  const schedule = () => {
    const waitMs = minuteMs - (deps.clock.now().getTime() % minuteMs) + marginMs
    timer = setTimeout(async () => {
      await record().catch((error) => {
        if (deps.isOutage?.(error) !== true) deps.log.warn({ err: error }, 'cannot record the activity of this node')
      })
      if (timer !== undefined) schedule()
    }, waitMs).unref()
  }
  schedule()

  return {
    /** Records the current minute so far, for a person who looks at it. */
    record,
    async close() {
      clearTimeout(timer)
      timer = undefined
      await record().catch(() => {})
    },
  }
}

/** The difference of two readings of the metrics. */
function toActivity(totals: ActivityTotals, before: ActivityTotals): NodeActivity {
  const count = (name: 'scans' | 'deliveries' | 'engineSeconds', key: string) =>
    (totals[name].get(key) ?? 0) - (before[name].get(key) ?? 0)
  const countVerdicts = (kind: ScanKind) => ({
    clean: count('scans', toTotalKey(kind, 'clean')),
    threat: count('scans', toTotalKey(kind, 'threat')),
    error: count('scans', toTotalKey(kind, 'error')),
  })
  return {
    scans: { malware: countVerdicts('malware'), nsfw_image: countVerdicts('nsfw_image') },
    engineMs: {
      malware: count('engineSeconds', 'malware') * 1000,
      nsfw_image: count('engineSeconds', 'nsfw_image') * 1000,
    },
    latency: totals.latency.map((value, n) => value - (before.latency[n] ?? 0)),
    deliveries: {
      delivered: count('deliveries', 'delivered'),
      failed: count('deliveries', 'retried') + count('deliveries', 'failed'),
    },
  }
}

const writeEveryMs = 5000
/** Combinations of account and status counted between two writes; further ones are not counted. */
const maxCounts = 10_000

/** Counts rejected requests for the usage page of each account. A crash loses at most 5 seconds of counts. */
export function openRejectedRequests(deps: {
  store: RejectedRequestStore
  isOutage(error: unknown): boolean
  log: Logger
}) {
  let counts = new Map<string, { accountId: string; status: number; count: number }>()

  const write = async () => {
    if (counts.size === 0) return
    const batch = counts
    counts = new Map()
    await deps.store.add([...batch.values()])
  }
  const timer = setInterval(() => {
    write().catch((error) => {
      if (!deps.isOutage(error)) deps.log.warn({ err: error }, 'cannot record the counts of rejected requests')
    })
  }, writeEveryMs).unref()

  return {
    count(accountId: string, status: number) {
      const key = `${accountId} ${status}`
      const entry = counts.get(key)
      if (entry !== undefined) entry.count++
      else if (counts.size < maxCounts) counts.set(key, { accountId, status, count: 1 })
    },
    async close() {
      clearInterval(timer)
      await write().catch(() => {})
    },
  }
}

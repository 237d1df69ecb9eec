import type { ClaimedJob, JobStore, Lease } from '../domain/ports/job-store.ts'
import type { Logger } from '../runtime/logger.ts'

type Deps = {
  jobs: JobStore
  run(job: ClaimedJob, signal: AbortSignal): Promise<void>
  /** Jobs at once. */
  concurrency: number
  /** Other work that takes of that, and comes first. */
  countOthers?(): number
  log: Logger
}

/** A worker that was killed loses its jobs after this; a living one says so three times as often. */
const leaseMs = 15_000
const extendEveryMs = 5000
/** For jobs of other processes, and those whose pause is over; our own are told of at once. */
const pollMs = 250
const lastRetryMs = 5000
/** However much else there is to do, nobody's job waits for ever. */
const leastShare = 1 / 8

/**
 * Claims jobs and runs them, as many at once as there is room for. A job is ours as long as its lease is extended; a
 * database that is away ends nothing: what was not settled is claimed again, by us or another.
 */
export function openScanWorker({ jobs, run, concurrency, countOthers = () => 0, log }: Deps) {
  const running = new Map<string, Lease>()
  const stopping = new AbortController()
  let failures = 0
  let isClaiming = false
  let wasPoked = false
  let timer: NodeJS.Timeout | undefined
  let whenIdle: (() => void) | undefined

  const claim = async () => {
    if (isClaiming || stopping.signal.aborted) {
      wasPoked = true
      return
    }
    isClaiming = true
    clearTimeout(timer)
    try {
      do {
        wasPoked = false
        const share = Math.max(concurrency - countOthers(), Math.ceil(concurrency * leastShare))
        const room = share - running.size
        if (room <= 0) break
        const claimed = await jobs.claim(room, leaseMs)
        for (const job of claimed) void start(job)
      } while (wasPoked)
      failures = 0
    } catch (error) {
      if (failures++ === 0) log.error({ err: error }, 'background scans cannot be claimed; trying again')
    } finally {
      isClaiming = false
      if (!stopping.signal.aborted) timer = setTimeout(claim, Math.min(pollMs * 2 ** failures, lastRetryMs))
    }
  }

  const start = async (job: ClaimedJob) => {
    running.set(job.scan.id, job.lease)
    try {
      await run(job, stopping.signal)
    } catch (error) {
      // Its lease runs out, and it is tried again.
      log.error({ err: error, scan: job.scan.id }, 'a background scan could not be settled')
    } finally {
      running.delete(job.scan.id)
      if (running.size === 0) whenIdle?.()
      // Claims are for many at a time: not for each that ends, but before there is nothing to do.
      if (running.size <= concurrency / 2) void claim()
    }
  }

  const extending = setInterval(() => {
    if (running.size === 0) return
    jobs.extend([...running.values()], leaseMs).catch((error) => {
      log.error({ err: error }, 'the leases of background scans could not be extended')
    })
  }, extendEveryMs)
  void claim()

  return {
    /** There is a new job. */
    poke: () => void claim(),
    countRunning: () => running.size,
    /** Those that run may finish; what does not in time is somebody else's when its lease is over. */
    async close(withinMs: number) {
      stopping.abort()
      clearTimeout(timer)
      if (running.size > 0) {
        await new Promise<void>((resolve) => {
          whenIdle = resolve
          setTimeout(resolve, withinMs).unref()
        })
      }
      clearInterval(extending)
    },
  }
}

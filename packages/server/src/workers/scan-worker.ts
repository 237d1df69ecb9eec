import type { ClaimedJob, JobStore, Lease } from '../domain/ports/job-store.ts'
import { atMost } from '../runtime/at-most.ts'
import type { Logger } from '../runtime/logger.ts'

type Deps = {
  jobs: JobStore
  run(job: ClaimedJob, signal: AbortSignal): Promise<void>
  /** Jobs at once. */
  concurrency: number
  /** Other work that takes of that, and comes first. */
  countOthers?(): number
  log: Logger
  /** The database is away: somebody else says so, once. */
  isOutage?(error: unknown): boolean
}

/** A worker that was killed loses its jobs after this; a living one says so three times as often. */
const leaseMs = 15_000
const extendEveryMs = 5000
/** For jobs of other processes, and those whose pause is over; our own are told of at once. */
const pollMs = 250
const lastRetryMs = 5000
/** However much else there is to do, nobody's job waits for ever. */
const leastShare = 1 / 8
/** For giving jobs back, when time was up already. */
const giveBackMs = 3000

/**
 * Claims jobs and runs them, as many at once as there is room for. A job is ours as long as its lease is extended; a
 * database that is away ends nothing: what was not settled is claimed again, by us or another.
 */
export function openScanWorker(deps: Deps) {
  const { jobs, run, concurrency, countOthers = () => 0, log, isOutage = () => false } = deps
  const running = new Map<string, Lease>()
  const stopping = new AbortController()
  let failures = 0
  let claiming: Promise<void> | undefined
  let wasPoked = false
  let timer: NodeJS.Timeout | undefined
  let whenIdle: (() => void) | undefined

  const claim = () => {
    if (claiming !== undefined || stopping.signal.aborted) {
      wasPoked = true
      return
    }
    clearTimeout(timer)
    claiming = claimAll().finally(() => {
      claiming = undefined
      if (!stopping.signal.aborted) timer = setTimeout(claim, Math.min(pollMs * 2 ** failures, lastRetryMs))
    })
  }

  const claimAll = async () => {
    try {
      do {
        wasPoked = false
        const share = Math.max(concurrency - countOthers(), Math.ceil(concurrency * leastShare))
        const room = share - running.size
        if (room <= 0) break
        const claimed = await jobs.claim(room, leaseMs)
        // They came too late for us, and nobody else is to wait for their leases.
        if (stopping.signal.aborted) await giveBack(claimed.map(({ lease }) => lease))
        else for (const job of claimed) void start(job)
      } while (wasPoked && !stopping.signal.aborted)
      failures = 0
    } catch (error) {
      if (failures++ === 0 && !isOutage(error)) {
        log.error({ err: error }, 'background scans cannot be claimed; trying again')
      }
    }
  }

  const start = async (job: ClaimedJob) => {
    running.set(job.scan.id, job.lease)
    try {
      await run(job, stopping.signal)
    } catch (error) {
      // Its lease runs out, and it is tried again.
      if (!isOutage(error)) log.error({ err: error, scan: job.scan.id }, 'a background scan could not be settled')
    } finally {
      running.delete(job.scan.id)
      if (running.size === 0) whenIdle?.()
      // Claims are for many at a time: not for each that ends, but before there is nothing to do.
      if (running.size <= concurrency / 2) claim()
    }
  }

  const giveBack = (leases: Lease[]) =>
    Promise.all(leases.map((lease) => jobs.giveBack(lease, { ms: 0, counts: false }))).catch((error) => {
      log.warn({ err: error, jobs: leases.length }, 'jobs could not be given back; they wait for their leases to end')
    })

  const extending = setInterval(() => {
    if (running.size === 0) return
    jobs.extend([...running.values()], leaseMs).catch((error) => {
      if (!isOutage(error)) log.error({ err: error }, 'the leases of background scans could not be extended')
    })
  }, extendEveryMs)
  claim()

  const stop = () => {
    stopping.abort()
    clearTimeout(timer)
  }

  return {
    /** There is a new job. */
    poke: claim,
    countRunning: () => running.size,
    /** No job is begun any more; downloads end, and are given back. */
    stop,
    /** Those that run may finish; what does not in time is given back, for another to begin anew at once. */
    async close(withinMs: number) {
      stop()
      await atMost(claiming, giveBackMs)
      if (running.size > 0) {
        await atMost(
          new Promise<void>((resolve) => {
            whenIdle = resolve
          }),
          withinMs,
        )
      }
      clearInterval(extending)
      const left = [...running.values()]
      if (left.length === 0) return
      log.info({ jobs: left.length }, 'jobs that did not end in time are given back')
      await atMost(giveBack(left), giveBackMs)
    },
  }
}

import { waitAtMost } from '../runtime/clock.ts'
import type { Logger } from '../runtime/logger.ts'

type Deps<Work, Lease> = {
  /** Name of the work in the log, in the plural. */
  name: string
  /** Returns how many more pieces of work may start. */
  countRoom(running: number): number
  claim(limit: number): Promise<Work[]>
  /** Time to the next claim when nothing pokes before; called after each claim. */
  findPollMs(claimed: number, room: number): number | Promise<number>
  /** Whether to claim more at once after a piece of work has ended; a claim under way has asked for `asked` pieces. */
  claimsMore(running: number, asked: number): boolean
  /** Whether `poke` ends a back-off, because it is only called after the database has answered. */
  pokeEndsBackOff: boolean
  toLease(work: Work): Lease
  toId(work: Work): string
  /**
   * Runs until the work is recorded. When it throws, the lease ends and the work is claimed again, here or elsewhere.
   */
  run(work: Work, signals: Signals): Promise<void>
  /**
   * Undefined for work that is always shorter than its lease; such work is finished, not released, when the service
   * stops.
   */
  renewal?: Renewal<Lease>
  log: Logger
  /** Whether the database is unreachable; the watch of the database logs that once for all parts. */
  isOutage(error: unknown): boolean
}

type Signals = {
  stopping: AbortSignal
  /** Another worker holds the lease now, or no client waits for the result. */
  lost: AbortSignal
}

type Renewal<Lease> = {
  everyMs: number
  /** Returns the leases that are still held; undefined stands for all. */
  extend(leases: Lease[]): Promise<Lease[] | undefined>
  /** Gives work back, so that another worker can claim it at once. */
  release(leases: Lease[]): Promise<unknown>
}

type LeaseDeps<Lease> = Pick<Deps<never, Lease>, 'renewal' | 'name' | 'log'>

const minBackOffMs = 250
const maxBackOffMs = 5000
/** Limit for releasing leases when the time for stopping is over already. */
const releaseMs = 3000

/**
 * Claims work, as much as there is room for, and runs it. A lease protects a piece of work for as long as it is
 * extended. While claims fail the loop backs off; a database outage cancels nothing that runs.
 */
export function openLeasedWork<Work, Lease extends { token: string }>(deps: Deps<Work, Lease>) {
  const leases = newLeases(deps)
  const failure = newFailureLog(deps)
  const stopping = new AbortController()
  let claiming: Promise<void> | undefined
  let asked = 0
  let isPoked = false
  let failedClaims = 0
  let timer: NodeJS.Timeout | undefined
  let onIdle: (() => void) | undefined
  const extending = deps.renewal && setInterval(() => void leases.extend().catch(failure.report), deps.renewal.everyMs)
  claim()

  return {
    /** Call when there may be new work. */
    poke: () => wake(deps.pokeEndsBackOff),
    countRunning: leases.count,
    stop,
    /** Waits for running work, at most `withinMs`; work that takes longer is released. */
    async close(withinMs?: number) {
      stop()
      await waitAtMost(claiming, withinMs === undefined ? undefined : releaseMs)
      if (leases.count() > 0) {
        const idle = Promise.withResolvers<void>()
        onIdle = idle.resolve
        await waitAtMost(idle.promise, withinMs)
      }
      clearInterval(extending)
      if (leases.count() === 0) return
      deps.log.info({ count: leases.count() }, `${deps.name} did not end in time and are released`)
      await waitAtMost(leases.release(leases.list()), releaseMs)
    },
  }

  function claim() {
    if (claiming !== undefined || stopping.signal.aborted) {
      isPoked = true
      return
    }
    clearTimeout(timer)
    claiming = claimAll().then((pollMs) => {
      claiming = undefined
      asked = 0
      if (!stopping.signal.aborted) timer = setTimeout(claim, pollMs)
    })
  }

  function wake(endsBackOff: boolean) {
    if (failedClaims > 0 && claiming === undefined && !endsBackOff) return
    claim()
  }

  /** Claims until no poke came meanwhile. Returns the time to the next claim. */
  async function claimAll(): Promise<number> {
    try {
      let pollMs: number
      do {
        isPoked = false
        pollMs = await claimOnce()
      } while (isPoked && !stopping.signal.aborted)
      failedClaims = 0
      failure.end()
      return pollMs
    } catch (error) {
      failure.report(error)
      return Math.min(minBackOffMs * 2 ** failedClaims++, maxBackOffMs)
    }
  }

  async function claimOnce(): Promise<number> {
    const room = deps.countRoom(leases.count())
    asked = Math.max(0, room)
    const claimed = room > 0 ? await deps.claim(room) : []
    // Work that was claimed while the service began to stop is released, so that it does not wait for its lease to end.
    if (deps.renewal !== undefined && stopping.signal.aborted) await leases.release(claimed.map(deps.toLease))
    else for (const work of claimed) void run(work)
    return deps.findPollMs(claimed.length, room)
  }

  async function run(work: Work) {
    const lease = deps.toLease(work)
    const lost = leases.hold(lease)
    try {
      await deps.run(work, { stopping: stopping.signal, lost })
    } catch (error) {
      failure.report(error, deps.toId(work))
    } finally {
      leases.drop(lease)
      if (leases.count() === 0) onIdle?.()
      if (deps.claimsMore(leases.count(), asked)) wake(false)
    }
  }

  /** Claims nothing more, and aborts the `stopping` signal of running work. */
  function stop() {
    stopping.abort(new Error('The service is stopping'))
    clearTimeout(timer)
  }
}

/** The leases of running work, each with the signal that says that it was lost. */
function newLeases<Lease extends { token: string }>({ renewal, name, log }: LeaseDeps<Lease>) {
  const leasesByToken = new Map<string, { lease: Lease; lost: AbortController }>()
  const list = () => [...leasesByToken.values()].map(({ lease }) => lease)
  return {
    count: () => leasesByToken.size,
    list,
    hold(lease: Lease): AbortSignal {
      const lost = new AbortController()
      leasesByToken.set(lease.token, { lease, lost })
      return lost.signal
    },
    drop: ({ token }: Lease) => leasesByToken.delete(token),
    async extend() {
      if (leasesByToken.size === 0) return
      const before = [...leasesByToken.values()]
      const extended = await renewal?.extend(list())
      if (extended === undefined) return
      const tokens = new Set(extended.map(({ token }) => token))
      for (const { lease, lost } of before) if (!tokens.has(lease.token)) lost.abort(new Error('The lease was lost'))
    },
    async release(leases: Lease[]) {
      await renewal?.release(leases).catch((error) => {
        const notice = `cannot release ${name}; they are claimed again when their leases end`
        log.warn({ err: error, count: leases.length }, notice)
      })
    },
  }
}

/** Logs the first failure and the recovery after it, however many claims and pieces of work fail in between. */
function newFailureLog({ name, log, isOutage }: Pick<Deps<never, never>, 'name' | 'log' | 'isOutage'>) {
  let isLogged = false
  return {
    report(error: unknown, id?: string) {
      if (isOutage(error)) return
      if (!isLogged) log.error({ err: error, id }, `cannot process ${name}; retrying`)
      isLogged = true
    },
    end() {
      if (isLogged) log.info(`${name} are processed again`)
      isLogged = false
    },
  }
}

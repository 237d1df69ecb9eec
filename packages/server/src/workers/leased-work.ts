import { atMost } from '../runtime/at-most.ts'
import type { Logger } from '../runtime/logger.ts'

type Deps<Work, Lease> = {
  /** How many more may be begun. */
  countRoom(running: number): number
  claim(limit: number): Promise<Work[]>
  toLease(work: Work): Lease
  /** To find it by, in the log. */
  toId(work: Work): string
  /** What `lost` says: somebody else has it, or nobody wants it any more. */
  run(work: Work, signals: { stopping: AbortSignal; lost: AbortSignal }): Promise<void>
  release(leases: Lease[]): Promise<unknown>
  /** Says which are still ours; undefined: all that are left. */
  extend(leases: Lease[]): Promise<Lease[] | undefined>
  extendEveryMs: number
  findPollMs(): number
  /** After one has ended: whether to look for more at once. */
  isHungry(running: number): boolean
  /** `jobs` or the like, for the log. */
  name: string
  log: Logger
  /** The database is away: somebody else says so, once. */
  isOutage(error: unknown): boolean
}

const lastRetryMs = 5000
/** For giving work back, when time was up already. */
const releaseMs = 3000

/**
 * Claims work and does it, as much at once as there is room for. It is ours as long as its lease is extended; a database
 * that is away ends nothing: what was not completed is claimed again, by us or another.
 */
export function openLeasedWork<Work, Lease extends { token: string }>(deps: Deps<Work, Lease>) {
  const { name, log, isOutage } = deps
  const running = new Map<string, { lease: Lease; lost: AbortController }>()
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
      if (!stopping.signal.aborted) timer = setTimeout(claim, Math.min(deps.findPollMs() * 2 ** failures, lastRetryMs))
    })
  }

  const claimAll = async () => {
    try {
      do {
        wasPoked = false
        const room = deps.countRoom(running.size)
        if (room <= 0) break
        const claimed = await deps.claim(room)
        // They came too late for us, and nobody is to wait for their leases to end.
        if (stopping.signal.aborted) await release(claimed.map(deps.toLease))
        else for (const work of claimed) void start(work)
      } while (wasPoked && !stopping.signal.aborted)
      failures = 0
    } catch (error) {
      if (failures++ === 0 && !isOutage(error)) log.error({ err: error }, `${name} cannot be claimed; trying again`)
    }
  }

  const start = async (work: Work) => {
    const lease = deps.toLease(work)
    const lost = new AbortController()
    running.set(lease.token, { lease, lost })
    try {
      await deps.run(work, { stopping: stopping.signal, lost: lost.signal })
    } catch (error) {
      // Its lease runs out, and it is tried again.
      if (!isOutage(error)) log.error({ err: error, id: deps.toId(work) }, `one of the ${name} could not be ended`)
    } finally {
      running.delete(lease.token)
      if (running.size === 0) whenIdle?.()
      if (deps.isHungry(running.size)) claim()
    }
  }

  const release = (leases: Lease[]) =>
    deps.release(leases).catch((error) => {
      log.warn(
        { err: error, count: leases.length },
        `${name} could not be given back; they wait for their leases to end`,
      )
    })

  const listLeases = () => [...running.values()].map(({ lease }) => lease)

  const extend = async () => {
    if (running.size === 0) return
    const held = [...running.values()]
    const kept = await deps.extend(listLeases())
    if (kept === undefined) return
    const ours = new Set(kept.map(({ token }) => token))
    for (const { lease, lost } of held)
      if (!ours.has(lease.token)) lost.abort(new Error('Nobody waits for it any more'))
  }
  const extending = setInterval(() => {
    extend().catch((error) => {
      if (!isOutage(error)) log.error({ err: error }, `the leases of ${name} could not be extended`)
    })
  }, deps.extendEveryMs)
  claim()

  const stop = () => {
    stopping.abort(new Error('The service is stopping'))
    clearTimeout(timer)
  }

  return {
    /** There may be more. */
    poke: claim,
    countRunning: () => running.size,
    /** Nothing is begun any more; downloads end, and are given back. */
    stop,
    /** What runs may finish; what does not in time is given back, for another to begin anew at once. */
    async close(withinMs: number) {
      stop()
      await atMost(claiming, releaseMs)
      if (running.size > 0) {
        await atMost(
          new Promise<void>((resolve) => {
            whenIdle = resolve
          }),
          withinMs,
        )
      }
      clearInterval(extending)
      const left = listLeases()
      if (left.length === 0) return
      log.info({ count: left.length }, `${name} that did not end in time are given back`)
      await atMost(release(left), releaseMs)
    },
  }
}

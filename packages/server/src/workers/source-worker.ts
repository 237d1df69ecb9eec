import type { ClaimedSource, SourceStore } from '../domain/ports/source-store.ts'
import type { Logger } from '../runtime/logger.ts'
import { openLeasedWork } from './leased-work.ts'

/** Sources whose update is due are looked for this often. */
const pollMs = 10_000
export const sourceLeaseMs = 60_000
const extendEveryMs = 15_000
/** A stopped update has this time to end its processes. It records nothing, so closing does not wait longer. */
const closeMs = 5000

/**
 * Updates sources of signatures when they are due, one at a time. The store leases each to one process, and another
 * takes over when that is killed.
 */
export function openSourceWorker(deps: {
  store: Pick<SourceStore, 'claim' | 'extend' | 'release'>
  update(claimed: ClaimedSource, stopping: AbortSignal): Promise<unknown>
  log: Logger
  isOutage(error: unknown): boolean
  everyMs?: number
}) {
  const { store, update, log, isOutage, everyMs = pollMs } = deps
  const { poke, stop, close } = openLeasedWork({
    name: 'updates of sources',
    countRoom: (running) => 1 - running,
    async claim() {
      const claimed = await store.claim(sourceLeaseMs)
      return claimed === undefined ? [] : [claimed]
    },
    findPollMs: () => everyMs,
    claimsMore: () => true,
    pokeEndsBackOff: false,
    toLease: ({ token }: ClaimedSource) => ({ token }),
    toId: ({ name }) => name,
    async run(claimed, { stopping, lost }) {
      const signal = AbortSignal.any([stopping, lost])
      try {
        await update(claimed, signal)
      } catch (error) {
        // An update that was stopped begins again, here or elsewhere.
        await store.release([claimed.token])
        if (!signal.aborted) throw error
      }
    },
    renewal: {
      everyMs: extendEveryMs,
      async extend(leases) {
        const tokens = leases.map(({ token }) => token)
        return (await store.extend(tokens, sourceLeaseMs)).map((token) => ({ token }))
      },
      release: (leases) => store.release(leases.map(({ token }) => token)),
    },
    log,
    isOutage,
  })
  return {
    poke,
    async close(withinMs = closeMs) {
      stop()
      await close(withinMs)
    },
  }
}

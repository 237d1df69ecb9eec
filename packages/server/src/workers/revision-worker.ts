import type { ClaimedRevisionWork, RevisionStore } from '../domain/ports/revision-store.ts'
import type { Logger } from '../runtime/logger.ts'
import { openLeasedWork } from './leased-work.ts'

/** Poll interval: a change is announced by a notification, which may get lost, and second passes are due by time. */
const pollMs = 5000
const leaseMs = 15_000
const extendMs = 5000

/**
 * Finds the results that new knowledge about hashes concerns, and revises them. The store hands out one change at a
 * time over all processes; each piece of it is one transaction, so a killed process leaves nothing half done.
 */
export function openRevisionWorker(deps: {
  store: Pick<RevisionStore, 'claim' | 'extend' | 'release' | 'postpone' | 'runPiece' | 'finish'>
  /** Makes the hashes of a changed signature file a list, whose results are then revised. */
  readSignatureFile(name: string): Promise<void>
  /** Called when webhooks about revisions are due. */
  onDeliveries(): void
  log: Logger
  isOutage(error: unknown): boolean
}) {
  const { store, log, isOutage } = deps
  const { poke, close } = openLeasedWork({
    name: 'revisions of results',
    countRoom: (running) => 1 - running,
    claim: () => store.claim(leaseMs),
    findPollMs: () => pollMs,
    // Changes follow one another.
    claimsMore: () => true,
    pokeEndsBackOff: false,
    toLease: ({ id, token }: ClaimedRevisionWork) => ({ id, token }),
    toId: ({ id }) => id,
    run: async (work, { stopping, lost }) => {
      try {
        await runWork(work, AbortSignal.any([stopping, lost]))
      } catch (error) {
        // Other work must not wait for work that fails every time. Without a database, the lease ends by itself.
        await store.postpone(work).catch(() => {})
        throw error
      }
    },
    renewal: {
      everyMs: extendMs,
      extend: (leases) => store.extend(leases, leaseMs),
      release: store.release,
    },
    log,
    isOutage,
  })
  return { poke, close: (withinMs: number) => close(withinMs) }

  async function runWork(work: ClaimedRevisionWork, signal: AbortSignal): Promise<void> {
    if (work.signatureFile !== null) {
      await deps.readSignatureFile(work.signatureFile)
      await store.finish(work)
      return
    }
    const revised = await runPieces(work, signal)
    if (revised > 0) log.info({ revised }, 'results were revised')
  }

  async function runPieces(work: ClaimedRevisionWork, signal: AbortSignal): Promise<number> {
    let revised = 0
    for (;;) {
      const piece = await store.runPiece(work)
      revised += piece.revised
      if (piece.deliveries > 0) deps.onDeliveries()
      if (piece.state !== 'more') return revised
      if (signal.aborted) {
        await store.release([work])
        return revised
      }
    }
  }
}

import { hash } from 'node:crypto'
import { keepTrying } from '../keep-trying.ts'
import type { JobContents } from '../ports/content-store.ts'
import type { ClaimedErrand, ErrandEnd, ErrandStore } from '../ports/errand-store.ts'
import { isPassing } from '../scans/is-passing.ts'
import type { Outcome, Outcomes } from '../scans/outcome.ts'

type Deps = {
  errands: ErrandStore
  contents: JobContents
  outcomes: Outcomes
  reportFailure(error: unknown): void
  onEnded(id: string): void
}

/** One look for another node. A failure is told at once: whoever waits can try again, which is quicker than we are. */
export function makeRunErrand(deps: Deps) {
  /** `signal`: we are stopping, or it is not ours any more. */
  return async (errand: ClaimedErrand, signal: AbortSignal): Promise<void> => {
    let end: ErrandEnd
    try {
      end = { outcome: await findOutcome(errand, signal) }
    } catch (error) {
      if (signal.aborted) return deps.errands.giveBack(errand.lease)
      if (!isPassing(error)) deps.reportFailure(error)
      end = { failure: isPassing(error) ? 'busy' : 'down' }
    }
    if (await keepTrying(() => deps.errands.settle(errand.lease, end))) deps.onEnded(errand.lease.id)
  }

  async function findOutcome({ source, asked }: ClaimedErrand, signal: AbortSignal): Promise<Outcome> {
    const { accountId, known, ...about } = asked
    const rest = { ...about, isTest: false }
    if (source.at === 'url') {
      if (accountId === null) throw new Error('An errand for an address has no account')
      return deps.outcomes.ofUrl(source.url, { ...rest, accountId, mode: 'sync', signal })
    }
    if (known === null) throw new Error('An errand does not say what its content is')
    const content = await deps.contents.open(source, known)
    try {
      // What lies in a row could be moved to another one by whoever can write there.
      if (content.whole !== undefined && hash('sha256', content.whole) !== known.sha256) {
        throw new Error('The content of an errand is not what it says')
      }
      return await deps.outcomes.ofContent(content, rest)
    } finally {
      await content.release()
    }
  }
}

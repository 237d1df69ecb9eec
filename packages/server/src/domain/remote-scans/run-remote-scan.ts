import { hash } from 'node:crypto'
import type { JobContents } from '../ports/content-store.ts'
import type { ClaimedRemoteScan, RemoteScanEnd, RemoteScanStore } from '../ports/remote-scan-store.ts'
import { isTransient, keepTrying } from '../retry.ts'
import type { FinalResult, Scanner } from '../scans/scanner.ts'

type Deps = {
  remoteScans: RemoteScanStore
  contents: JobContents
  scanner: Scanner
  reportFailure(error: unknown): void
  onEnded(id: string): void
}

/** One look for another node. A failure is told at once: whoever waits can try again, which is quicker than we are. */
export function makeRunRemoteScan(deps: Deps) {
  /** `signal`: we are stopping, or it is not ours any more. */
  return async (remoteScan: ClaimedRemoteScan, signal: AbortSignal): Promise<void> => {
    let end: RemoteScanEnd
    try {
      end = { outcome: await findResult(remoteScan, signal) }
    } catch (error) {
      if (signal.aborted) return deps.remoteScans.release(remoteScan.lease)
      if (!isTransient(error)) deps.reportFailure(error)
      end = { failure: isTransient(error) ? 'busy' : 'down' }
    }
    if (await keepTrying(() => deps.remoteScans.complete(remoteScan.lease, end))) deps.onEnded(remoteScan.lease.id)
  }

  async function findResult({ source, asked }: ClaimedRemoteScan, signal: AbortSignal): Promise<FinalResult> {
    const { accountId, known, ...about } = asked
    const rest = { ...about, isTest: false }
    if (source.at === 'url') {
      if (accountId === null) throw new Error('A remote scan for an address has no account')
      return deps.scanner.scanUrl(source.url, { ...rest, accountId, mode: 'sync', signal })
    }
    if (known === null) throw new Error('A remote scan does not say what its content is')
    const content = await deps.contents.open(source, known)
    try {
      // What lies in a row could be moved to another one by whoever can write there.
      if (content.whole !== undefined && hash('sha256', content.whole) !== known.sha256) {
        throw new Error('The content of a remote scan is not what it says')
      }
      return await deps.scanner.scanContent(content, rest)
    } finally {
      await content.release()
    }
  }
}

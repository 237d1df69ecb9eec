import type { JobContents } from '../ports/content-store.ts'
import type { ClaimedRemoteScan, RemoteScanCompletion, RemoteScanStore } from '../ports/remote-scan-store.ts'
import { isTransient, retryBriefly } from '../retry.ts'
import type { FinalResult } from '../scans/scan.ts'
import type { Scanner } from '../scans/scanner.ts'

type Deps = {
  remoteScans: RemoteScanStore
  contents: JobContents
  scanner: Scanner
  reportFailure(error: unknown): void
  onCompleted(id: string): void
}

/** Runs a scan for another node. A failure is reported at once: its caller can try again sooner than this worker. */
export function makeRunRemoteScan(deps: Deps) {
  /** `signal` is aborted when this process stops or loses the lease. */
  return async (remoteScan: ClaimedRemoteScan, signal: AbortSignal): Promise<void> => {
    let completion: RemoteScanCompletion
    try {
      completion = { result: await scan(remoteScan, signal) }
    } catch (error) {
      if (signal.aborted) return deps.remoteScans.release(remoteScan.lease)
      if (!isTransient(error)) deps.reportFailure(error)
      completion = { failure: isTransient(error) ? 'busy' : 'down' }
    }
    if (await retryBriefly(() => deps.remoteScans.complete(remoteScan.lease, completion)))
      deps.onCompleted(remoteScan.lease.id)
  }

  async function scan({ lease, source, options }: ClaimedRemoteScan, signal: AbortSignal): Promise<FinalResult> {
    const { identity, ...scanAttributes } = options
    const { accountId } = scanAttributes
    const scanOptions = { ...scanAttributes, isTest: false }
    if (source.at === 'url') {
      if (accountId === null) throw new Error('A remote scan of a URL has no account')
      return deps.scanner.scanUrl(source.url, { ...scanOptions, accountId, mode: 'sync', signal })
    }
    if (identity === null) throw new Error('A remote scan does not say which content it is about')
    const content = await deps.contents.open(source, identity, { accountId: null, scanId: lease.id })
    return deps.scanner.scanContent(content, scanOptions).finally(content.release)
  }
}

import type { EngineState } from '../../domain/ports/engines.ts'
import type { Logger } from '../../runtime/logger.ts'
import type { ServerAddress } from '../../runtime/node-http.ts'
import { makeClamAvEngine, toReport } from './clamav-engine.ts'
import { makeClamdClient } from './client.ts'
import type { ClamAv } from './open-own-clamd.ts'

const checkEveryMs = 5000
const timeoutMs = 3000
/** The first bytes of a 7z archive: a clamd with Assay's signatures reports a container that it cannot open. */
const markedBytes = Buffer.from('377abcaf271c0004', 'hex')
const markersMissing =
  "ClamAV at ASSAY_CLAMD lacks Assay's marker signatures, so Assay searches all content for containers, which is slow. " +
  'Copy packages/server/signatures into its database.'

/** Uses a clamd that the operator runs, and checks its version and signatures every few seconds. */
export async function openGivenClamd(deps: { address: ServerAddress; log: Logger }): Promise<ClamAv> {
  const { log } = deps
  const client = makeClamdClient(deps)
  let state: EngineState | undefined
  let fault: string | undefined
  let hasMarkers = false

  async function check() {
    try {
      state = toState(await client.sendCommand('VERSION', timeoutMs))
      const { suspectsContainer } = toReport(await client.probe(markedBytes, timeoutMs))
      hasMarkers = suspectsContainer
      fault = hasMarkers ? undefined : markersMissing
    } catch (error) {
      if (fault === undefined) log.error({ err: error }, 'ClamAV at ASSAY_CLAMD does not answer')
      fault = 'ClamAV at ASSAY_CLAMD does not answer.'
    }
  }
  await check()
  const timer = setInterval(check, checkEveryMs)
  timer.unref()

  return {
    engine: makeClamAvEngine({
      client,
      findState: () => state,
      marksContainers: () => hasMarkers,
      onRetry: (error) => log.warn({ reason: error.message }, 'ClamAV did not answer; the scan is repeated once'),
    }),
    findFault: () => fault,
    findRemedy: () => 'run freshclam for the clamd that Assay uses, and reload that clamd',
    async close() {
      clearInterval(timer)
      client.close()
    },
  }
}

/**
 * Reads `ClamAV 1.4.6/27820/Sat Nov 14 08:25:01 2026`, number and date of `daily`. Without ClamAV's official databases
 * the last two parts are missing.
 */
export function toState(answer: string): EngineState {
  const [version = 'ClamAV', number, date] = answer.split('/')
  const at = Number(number) > 0 ? Date.parse(`${date} UTC`) : Number.NaN
  return {
    version,
    // The answer does not change with the operator's own signatures, so verdicts cannot be cached under it.
    verdictVersion: undefined,
    // The answer has the number of the database, not the number of signatures.
    signatures: undefined,
    signaturesAt: Number.isNaN(at) ? undefined : new Date(at),
  }
}

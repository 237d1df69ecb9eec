import type { EngineState } from '../../domain/ports/engines.ts'
import type { Logger } from '../../runtime/logger.ts'
import { makeClamAvEngine } from './clamav-engine.ts'
import { makeClamdClient } from './client.ts'
import type { ClamdAddress } from './connection.ts'
import type { ClamAv } from './open-own-clamd.ts'
import { toReport } from './reply.ts'

const lookEveryMs = 5000
const timeoutMs = 3000
/** The first bytes of a 7z archive: a clamd that has our signatures says that it met a container. */
const markedBytes = Buffer.from('377abcaf271c0004', 'hex')
const withoutMarkers =
  "ClamAV at ASSAY_CLAMD lacks Assay's marker signatures: containers that it cannot open may be called clean. " +
  'Copy packages/server/signatures into its database.'

/** A clamd that the operator runs: it is used as it is, and asked now and then which signatures it has. */
export async function openGivenClamd(deps: { address: ClamdAddress; log: Logger }): Promise<ClamAv> {
  const { log } = deps
  const client = makeClamdClient(deps)
  let state: EngineState | undefined
  let fault: string | undefined

  async function look() {
    try {
      state = toState(await client.ask('VERSION', timeoutMs))
      const { unopened } = toReport(await client.probe(markedBytes, timeoutMs))
      fault = unopened ? undefined : withoutMarkers
    } catch (error) {
      if (fault === undefined) log.error({ err: error }, 'ClamAV at ASSAY_CLAMD does not answer')
      fault = 'ClamAV at ASSAY_CLAMD does not answer.'
    }
  }
  await look()
  const timer = setInterval(look, lookEveryMs)
  timer.unref()

  return {
    engine: makeClamAvEngine({
      client,
      findState: () => state,
      onRetry: (error) => log.warn({ reason: error.message }, 'ClamAV did not answer; the scan is tried once more'),
    }),
    findFault: () => fault,
    async close() {
      clearInterval(timer)
      client.close()
    },
  }
}

/** `ClamAV 1.4.6/27820/Sat Nov 14 08:25:01 2026`; without a database of ClamAV's own the last two are missing. */
function toState(answer: string): EngineState {
  const [version = 'ClamAV', , date] = answer.split('/')
  const at = date === undefined ? Number.NaN : Date.parse(`${date} UTC`)
  return {
    version,
    // Signatures of the operator's own come and go without a trace in this answer: nothing to remember verdicts by.
    verdictVersion: undefined,
    // It tells the number of the database, not of what is in it.
    signatures: undefined,
    signaturesAt: Number.isNaN(at) ? undefined : new Date(at),
  }
}

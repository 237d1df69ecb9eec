import { setTimeout as sleep } from 'node:timers/promises'
import { EngineBusy, EngineDown, type EngineState, type ScanEngine } from '../../domain/ports/engines.ts'
import type { ClamdClient } from './client.ts'
import { toReport } from './reply.ts'

const patienceMs = 10_000
const pollMs = 50

/**
 * A scan that clamd did not answer is tried once more when it is back, and no third time: content that made it fall twice
 * would make it fall again.
 */
export function makeClamAvEngine(deps: {
  client: Pick<ClamdClient, 'scan' | 'ask'>
  findState(): EngineState | undefined
  onRetry(error: EngineDown): void
}): ScanEngine {
  const { client } = deps
  return {
    name: 'ClamAV',
    kind: 'malware',
    opensContainers: true,
    findState: deps.findState,
    async scan(content, signal) {
      try {
        return toReport(await client.scan(content, signal))
      } catch (error) {
        if (signal.aborted || error instanceof EngineBusy || !(error instanceof EngineDown)) throw error
        deps.onRetry(error)
        await waitUntilBack(client, signal)
        return toReport(await client.scan(content, signal))
      }
    },
  }
}

async function waitUntilBack(client: Pick<ClamdClient, 'ask'>, signal: AbortSignal) {
  const deadline = performance.now() + patienceMs
  for (;;) {
    const answer = await client.ask('PING', 1000).catch(() => undefined)
    if (answer === 'PONG') return
    if (performance.now() > deadline) throw new EngineDown(`clamd was not back after ${patienceMs / 1000} s`)
    await sleep(pollMs, undefined, { signal })
  }
}

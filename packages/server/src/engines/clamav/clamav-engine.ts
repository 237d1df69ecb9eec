import { setTimeout as sleep } from 'node:timers/promises'
import {
  type Doubt,
  EngineBusy,
  EngineDown,
  type EngineReport,
  type EngineState,
  type ScanEngine,
} from '../../domain/ports/engines.ts'
import type { ClamdClient } from './client.ts'

const restartMs = 10_000
const pollMs = 50

/**
 * Repeats a scan once when clamd did not answer and is back, but not a second time: content that crashed clamd twice
 * would crash it again.
 */
export function makeClamAvEngine(deps: {
  client: Pick<ClamdClient, 'scan' | 'sendCommand'>
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

async function waitUntilBack(client: Pick<ClamdClient, 'sendCommand'>, signal: AbortSignal) {
  const deadline = performance.now() + restartMs
  for (;;) {
    const answer = await client.sendCommand('PING', 1000).catch(() => undefined)
    if (answer === 'PONG') return
    if (performance.now() > deadline) throw new EngineDown(`clamd did not answer again within ${restartMs / 1000} s`)
    await sleep(pollMs, undefined, { signal })
  }
}

/** Alerts about content that ClamAV could not scan. They are not findings. */
const doubtsByPrefix: [prefix: string, doubt: Doubt][] = [
  ['Heuristics.Encrypted.', 'EncryptedContent'],
  ['Heuristics.Assay.Encrypted.', 'EncryptedContent'],
  ['Heuristics.Limits.Exceeded', 'ScanLimitExceeded'],
]
/** Alerts of Assay's own signatures about containers that ClamAV cannot open. clamd tries them at every depth. */
const unopenedPrefix = 'Heuristics.Assay.Container.'

/** Only the exact reply `stream: OK` means that nothing was found. An unknown or missing reply throws. */
export function toReport(reply: string): EngineReport {
  if (reply === 'stream: OK') return { findings: [], doubts: [], unopened: false }
  const alert = /^stream: (.+) FOUND$/s.exec(reply)?.[1]
  if (alert !== undefined) return toAlertReport(alert)
  if (reply.startsWith('INSTREAM size limit exceeded')) {
    return { findings: [], doubts: ['ScanLimitExceeded'], unopened: false }
  }
  throw new EngineDown(reply === '' ? 'clamd closed the connection without a reply' : `clamd replied: ${reply}`)
}

function toAlertReport(alert: string): EngineReport {
  const doubt = doubtsByPrefix.find(([prefix]) => alert.startsWith(prefix))?.[1]
  if (doubt !== undefined) return { findings: [], doubts: [doubt], unopened: false }
  if (alert.startsWith(unopenedPrefix)) return { findings: [], doubts: [], unopened: true }
  // clamd marks every signature that is not its own, and every YARA rule.
  const name = alert.replace(/\.UNOFFICIAL$/, '').replace(/^YARA\./, '')
  return { findings: [name], doubts: [], unopened: false }
}

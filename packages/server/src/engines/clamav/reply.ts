import { type Doubt, EngineDown, type EngineReport } from '../../domain/ports/engines.ts'

/** Alerts that tell what the engine could not look at. They are no viruses. */
const doubtsByPrefix: [prefix: string, doubt: Doubt][] = [
  ['Heuristics.Encrypted.', 'EncryptedContent'],
  ['Heuristics.Assay.Encrypted.', 'EncryptedContent'],
  ['Heuristics.Limits.Exceeded', 'ScanLimitExceeded'],
]
/** From our own signatures, which clamd tries on everything it gets to see: a container that it does not know. */
const unopenedPrefix = 'Heuristics.Assay.Container.'

/** Only the very words `stream: OK` say that nothing was found. Anything unknown, and silence above all, is no answer. */
export function toReport(reply: string): EngineReport {
  if (reply === 'stream: OK') return { findings: [], doubts: [], unopened: false }
  const alert = /^stream: (.+) FOUND$/s.exec(reply)?.[1]
  if (alert !== undefined) return toAlertReport(alert)
  if (reply.startsWith('INSTREAM size limit exceeded')) {
    return { findings: [], doubts: ['ScanLimitExceeded'], unopened: false }
  }
  throw new EngineDown(reply === '' ? 'clamd closed the connection without an answer' : `clamd answered: ${reply}`)
}

function toAlertReport(alert: string): EngineReport {
  const doubt = doubtsByPrefix.find(([prefix]) => alert.startsWith(prefix))?.[1]
  if (doubt !== undefined) return { findings: [], doubts: [doubt], unopened: false }
  if (alert.startsWith(unopenedPrefix)) return { findings: [], doubts: [], unopened: true }
  // Said of every signature that is not from ClamAV itself, and of every YARA rule: noise in a name.
  const name = alert.replace(/\.UNOFFICIAL$/, '').replace(/^YARA\./, '')
  return { findings: [name], doubts: [], unopened: false }
}

import type { Clock } from '../ports/clock.ts'
import type { ListEntry, ListStore } from '../ports/list-store.ts'
import type { Assess } from './assess.ts'
import type { Assessment } from './malware-scan.ts'
import { maxSignals } from './verdict.ts'

/** What an operator said of this content or this finding has the last word, but one: what was not scanned is never clean. */
export function withLists(assess: Assess, listCurrent: () => ListEntry[]): Assess {
  return async (content, asked) => {
    const assessment = await assess(content, asked)
    const entries = listCurrent()
    if (entries.length === 0) return assessment
    const bySha256 = entries.filter(({ matches, value }) => matches === 'sha256' && value === content.sha256)
    const bySignal = entries.filter(({ matches, value }) => matches === 'signal' && assessment.signals.includes(value))
    return judge(assessment, [...bySha256, ...bySignal], asked.kind === 'malware' ? 'Virus' : 'Classification')
  }
}

/** A block wins over an allowance. Only a threat can be allowed: an error says that something was not seen. */
function judge(assessment: Assessment, entries: ListEntry[], form: 'Virus' | 'Classification'): Assessment {
  const block = entries.find(({ list }) => list === 'block')
  if (block !== undefined) {
    if (assessment.status === 'threat') return assessment
    return {
      ...assessment,
      status: 'threat',
      signals: [`${form}:Blocked`],
      metadata: { ...assessment.metadata, listed: block.reason },
    }
  }
  const [first] = entries
  if (assessment.status !== 'threat' || first === undefined) return assessment
  const metadata = { ...assessment.metadata, listed: first.reason }
  if (entries.some(({ matches }) => matches === 'sha256'))
    return { ...assessment, status: 'clean', signals: [], metadata }
  const left = assessment.signals.filter((signal) => !entries.some(({ value }) => value === signal))
  // There may be more than are told: then what is left is not known.
  if (left.length > 0 || assessment.signals.length >= maxSignals)
    return { ...assessment, signals: left.length > 0 ? left : assessment.signals }
  const { doubts = [] } = assessment
  return { ...assessment, status: doubts.length > 0 ? 'error' : 'clean', signals: doubts, metadata }
}

/** The entries as they were a moment ago: looked up again every few seconds, and at once where they are changed. */
export async function openLists(deps: {
  store: ListStore
  clock: Clock
  everyMs: number
  reportFailure(error: unknown): void
}) {
  let entries = await deps.store.listEntries(deps.clock.now())
  const refresh = async () => {
    entries = await deps.store.listEntries(deps.clock.now())
  }
  const timer = setInterval(() => void refresh().catch(deps.reportFailure), deps.everyMs).unref()
  return {
    listCurrent: () => entries.filter(({ expiresAt }) => expiresAt === null || expiresAt > deps.clock.now()),
    refresh,
    close: () => clearInterval(timer),
  }
}

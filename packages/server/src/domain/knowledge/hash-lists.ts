import { EngineDown, type EngineReport, type ScanEngine } from '../ports/engines.ts'
import type { ActiveHashLists, HashListStore, KnownHash } from '../ports/hash-list-store.ts'
import type {
  DecideRevision,
  KnownResult,
  MakeRevisionBody,
  NewRevision,
  RevisedStatus,
} from '../ports/revision-store.ts'
import { type Assess, clearFindings, maxSignals, toScanResult, type Verdict } from '../scans/scan.ts'

/** The lists as scans see them. */
export type HashLists = Pick<HashListStore, 'findHash'> & {
  /** The lists that were active a moment ago. Without any, scans ask the database nothing. */
  findActive(): ActiveHashLists
}

/** Remembers which lists are active; `refresh` reads that again, after a notification and every `everyMs`. */
export async function openHashLists(deps: {
  store: Pick<HashListStore, 'findActive' | 'findHash'>
  everyMs: number
  reportFailure(error: unknown): void
}) {
  let active = await deps.store.findActive()
  const refresh = async () => {
    active = await deps.store.findActive()
  }
  const refreshOrReport = () => refresh().catch(deps.reportFailure)
  const timer = setInterval(() => void refreshOrReport(), deps.everyMs).unref()
  const lists: HashLists = { findActive: () => active, findHash: deps.store.findHash }
  return { lists, refresh: refreshOrReport, close: () => clearInterval(timer) }
}

/**
 * Applies the lists of known hashes to verdicts on malware. The lookup runs beside the engines, so that the result
 * tells their findings too. Good hashes matter only where something was found. A scan can wait for the engines for
 * longer than the revisions of a change wait for running scans, so the lists that count are those of its end.
 */
export function withHashLists(assess: Assess, { findActive, findHash }: HashLists): Assess {
  return async (content, options) => {
    if (options.kind !== 'malware') return assess(content, options)
    const before = findActive()
    const isBeside = before.verdicts.includes('bad')
    const [verdict, known] = isBeside
      ? await awaitBoth(assess(content, options), findHash(content.sha256))
      : [await assess(content, options), undefined]
    const { verdicts, version } = findActive()
    if (isBeside && version === before.version) return applyKnown(verdict, known)
    const matters = verdicts.includes('bad') || (verdicts.includes('good') && verdict.status === 'threat')
    return matters ? applyKnown(verdict, await findHash(content.sha256)) : verdict
  }
}

/** The content is released after a failure, so the engines must have ended by then. */
async function awaitBoth<A, B>(assessing: Promise<A>, looking: Promise<B>): Promise<[A, B]> {
  const [assessed, looked] = await Promise.allSettled([assessing, looking])
  if (assessed.status === 'rejected') throw assessed.reason
  if (looked.status === 'rejected') throw looked.reason
  return [assessed.value, looked.value]
}

/** A good hash changes only a threat, and never makes content clean that was not read completely. */
function applyKnown(verdict: Verdict, known: KnownHash | undefined): Verdict {
  if (known === undefined) return verdict
  const metadata = { ...verdict.metadata, listed: `Hash list ${known.list}`, engines_status: verdict.status }
  if (known.verdict === 'bad') {
    const found = verdict.status === 'threat' ? verdict.signals : []
    const signals = [...new Set([toSignal(known), ...found])].slice(0, maxSignals)
    // An entry of the allow list may clear this threat, and must not clear an error of the engines with it.
    const doubts = verdict.doubts ?? (verdict.status === 'error' ? verdict.signals : [])
    return { ...verdict, status: 'threat', signals, metadata, doubts }
  }
  return verdict.status === 'threat' ? clearFindings(verdict, metadata) : verdict
}

/** The signal of a hash that is known as bad. */
const toSignal = ({ name, list }: Pick<KnownHash, 'name' | 'list'>): string => `Virus:${name ?? list}`

const nothingFound: EngineReport = { findings: [], doubts: [], suspectsContainer: false }

/**
 * Looks up the hashes of members, as an engine that does not open containers: Assay then unpacks every container that
 * it can open. The hash of the file itself is looked up once for all engines; see `withHashLists`.
 */
export function makeMemberHashes({ findActive, findHash }: HashLists) {
  const engine: ScanEngine = {
    name: 'Hash lists',
    kind: 'malware',
    opensContainers: false,
    isCertain: true,
    marksContainers: () => false,
    findState: () => ({
      version: 'Hash lists',
      verdictVersion: `hash lists ${findActive().version}`,
      signatures: undefined,
      signaturesAt: undefined,
    }),
    async scan({ sha256 }, _work, place) {
      if (place === undefined || place.depth === 0) return nothingFound
      const known = await findHash(sha256).catch((error) => {
        throw new EngineDown('The hash lists cannot be read', { cause: error })
      })
      return known?.verdict === 'bad'
        ? { ...nothingFound, findings: [toSignal(known).slice('Virus:'.length)] }
        : nothingFound
    },
  }
  return { engine, isActive: () => findActive().verdicts.includes('bad') }
}

/**
 * Decides a revision by the hash alone, because the content is gone: the result that the same engines and the lists of
 * now would give. The order is that of a scan: block list, allow list, bad hashes, good hashes, engines, whose
 * signatures of hashes are known.
 */
export const decideRevision: DecideRevision = (result) => {
  const { scan, revisedStatus } = result
  const { status, reason } = decide(result)
  return status === (revisedStatus ?? scan.status) ? undefined : { status, reason }
}

function decide({ scan, blocked, allowed, known, signature }: KnownResult): NewRevision {
  const listedSignals = readListedSignals(scan)
  // A block entry for a signal counts before all other lists, as in the scan.
  if (listedSignals.length > 0 && scan.status === 'threat') return { status: 'threat', reason: 'Block list' }
  const counts = (hash: KnownHash) => !listedSignals.includes(toSignal(hash))
  const found = signature !== null && counts(signature) ? signature : null
  const unlisted = listedSignals.length > 0 ? scan.status : findEnginesStatus(scan)
  const engines = found === null ? unlisted : 'threat'
  const cleared = engines === 'threat' ? findClearedStatus(scan) : engines

  if (blocked !== null) return { status: 'threat', reason: `Block list: ${blocked}` }
  if (allowed !== null) return { status: cleared, reason: `Allow list: ${allowed}` }
  if (known?.verdict === 'bad' && counts(known)) return toThreat(known)
  if (known?.verdict === 'good') return { status: cleared, reason: `Hash list ${known.list}: known as good` }
  return found === null ? { status: engines, reason: 'No list names this hash any more' } : toThreat(found)
}

const toThreat = (known: KnownHash): NewRevision => ({
  status: 'threat',
  reason: `Hash list ${known.list}: ${toSignal(known)}`,
})

const revisedStatuses: readonly string[] = ['clean', 'threat', 'error'] satisfies RevisedStatus[]

/** The status that the engines gave: a result that a list decided has it in its metadata. */
function findEnginesStatus({ status, metadata }: KnownResult['scan']): RevisedStatus {
  const noted = metadata?.engines_status
  return noted !== undefined && revisedStatuses.includes(noted) ? (noted as RevisedStatus) : status
}

/** The status without findings: an error where parts of the content were not read. */
function findClearedStatus(scan: KnownResult['scan']): RevisedStatus {
  const isWhole = scan.metadata?.not_scanned === undefined && ![scan.status, findEnginesStatus(scan)].includes('error')
  return isWhole ? 'clean' : 'error'
}

/** The signals whose entries decided the result; none when it was decided otherwise. */
function readListedSignals({ metadata }: KnownResult['scan']): string[] {
  const text = metadata?.listed_signals
  return text === undefined ? [] : (JSON.parse(text) as string[])
}

/** The body of the webhook. Its type tells it from webhooks about completed scans, which have none. */
export const makeRevisionBody: MakeRevisionBody = ({ scan }, { status, reason }, at) => {
  const revised = { revised_status: status, revised_at: at.toISOString(), revised_reason: reason }
  return JSON.stringify({
    type: 'scan.revised',
    ...toScanResult({ ...scan, metadata: { ...scan.metadata, ...revised } }),
  })
}

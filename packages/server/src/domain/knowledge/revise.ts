import type { KnownHash } from '../ports/hash-list-store.ts'
import type {
  DecideRevision,
  KnownResult,
  MakeRevisionBody,
  NewRevision,
  RevisedStatus,
} from '../ports/revision-store.ts'
import { toScanResult } from '../scans/scan.ts'
import { toSignal } from './hash-lists.ts'

/**
 * Decides by the hash alone, because the content is gone: the result that the same engines and the lists of now would
 * give. The order is that of a scan: block list, allow list, bad hashes, good hashes, engines, whose signatures of
 * hashes are known.
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

const statuses: readonly string[] = ['clean', 'threat', 'error'] satisfies RevisedStatus[]

/** The status that the engines gave: a result that a list decided has it in its metadata. */
function findEnginesStatus({ status, metadata }: KnownResult['scan']): RevisedStatus {
  const noted = metadata?.engines_status
  return noted !== undefined && statuses.includes(noted) ? (noted as RevisedStatus) : status
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

/** The type of the webhook, in its body: webhooks about completed scans have none. */
const revisionType = 'scan.revised'

export const makeRevisionBody: MakeRevisionBody = ({ scan }, revision, at) =>
  JSON.stringify({
    type: revisionType,
    ...toScanResult({ ...scan, metadata: { ...scan.metadata, ...toRevisionMetadata(revision, at) } }),
  })

/** The fields of a revision in the metadata of its result. */
const toRevisionMetadata = ({ status, reason }: { status: string; reason: string }, at: Date) => ({
  revised_status: status,
  revised_at: at.toISOString(),
  revised_reason: reason,
})

import type { DecideRevision, KnownResult, MakeRevisionBody, RevisedStatus } from '../ports/revision-store.ts'
import { toScanResult } from '../scans/scan.ts'
import { toSignal } from './hash-lists.ts'

/**
 * Decides by the hash alone, because the content is gone: the result that the same engines and the lists of now would
 * give. The order is that of a scan: block list, allow list, bad hashes, good hashes, engines.
 */
export const decideRevision: DecideRevision = (result) => {
  const { scan, revisedStatus } = result
  const { status, reason } = decide(result)
  return status === (revisedStatus ?? scan.status) ? undefined : { status, reason }
}

function decide({ scan, blocked, allowed, known }: KnownResult): { status: RevisedStatus; reason: string } {
  const engines = findEnginesStatus(scan)
  if (blocked !== null) return { status: 'threat', reason: `Block list: ${blocked}` }
  if (allowed !== null) return { status: engines === 'threat' ? 'clean' : engines, reason: `Allow list: ${allowed}` }
  if (known?.verdict === 'bad') {
    return { status: 'threat', reason: `Hash list ${known.list}: ${toSignal(known)}` }
  }
  if (known !== null) {
    // A result that a good hash has decided stays: it is an error where parts of the content were not read.
    const cleared = scan.status === 'threat' ? 'clean' : scan.status
    return { status: engines === 'threat' ? cleared : engines, reason: `Hash list ${known.list}: known as good` }
  }
  return { status: engines, reason: 'No list names this hash any more' }
}

const statuses: readonly string[] = ['clean', 'threat', 'error'] satisfies RevisedStatus[]

/** The status that the engines gave: a result that a list decided has it in its metadata. */
function findEnginesStatus({ status, metadata }: KnownResult['scan']): RevisedStatus {
  const noted = metadata?.engines_status
  return noted !== undefined && statuses.includes(noted) ? (noted as RevisedStatus) : status
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

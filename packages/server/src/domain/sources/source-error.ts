/** Why a source cannot be updated, as a sentence for the operator. The signatures in use stay. */
export class SourceError extends Error {
  override name = 'SourceError'
}

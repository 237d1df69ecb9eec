import type { Static } from 'typebox'
import { Type } from '../type.ts'
import { count, id, nullable, oneOf, page, pageQuery, text, time, webAddress } from './fields.ts'

export const HashListRow = Type.Object({
  name: text,
  verdict: oneOf('bad', 'good'),
  /** `signatures`: the SHA-256 signatures of a file, by which earlier results are revised. */
  origin: oneOf('import', 'signatures'),
  hashes: count,
  imported_by: text,
  imported_at: time,
})
export type HashListRow = Static<typeof HashListRow>
export const HashLists = Type.Array(HashListRow)

const revisedStatus = oneOf('clean', 'threat', 'error')

export const RevisionRow = Type.Object({
  id: text,
  at: time,
  scan_id: id,
  account_name: text,
  content_name: nullable(text),
  sha256: nullable(text),
  previous_status: revisedStatus,
  status: revisedStatus,
  reason: text,
})
export type RevisionRow = Static<typeof RevisionRow>
export const RevisionPage = page(RevisionRow)
export const RevisionFilter = Type.Object(pageQuery)

/** The receiver of a webhook for each revision; null for none. */
export const RevisionWebhook = Type.Object({ url: nullable(webAddress) })

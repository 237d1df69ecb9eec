import type { Static } from 'typebox'
import { Type } from '../type.ts'
import { flag, id, nullable, oneOf, text, time } from './fields.ts'

export const DownloadCredential = Type.Object({
  id,
  kind: oneOf('headers', 's3'),
  /** A host such as https://files.example.com, or a bucket such as s3://name. */
  target: text,
  /** Region of a bucket; null for hosts. */
  region: nullable(text),
  /** Names of the values, with the first 8 hex digits of their SHA-256; null if the credential cannot be used. */
  values: nullable(Type.Array(Type.Object({ name: text, fingerprint: text }))),
  created_at: time,
  created_by: text,
})
export type DownloadCredential = Static<typeof DownloadCredential>
export const DownloadCredentials = Type.Array(DownloadCredential)

const secret = Type.String({ minLength: 1, maxLength: 8000 })

/** A host with headers, or a bucket with an access key. No response ever contains the values. */
export const AddDownloadCredential = Type.Object({
  host: Type.Optional(Type.String({ maxLength: 300 })),
  headers: Type.Optional(
    Type.Array(Type.Object({ name: Type.String({ maxLength: 200 }), value: secret }), { maxItems: 50 }),
  ),
  bucket: Type.Optional(Type.String({ maxLength: 100 })),
  region: Type.Optional(Type.String({ maxLength: 100 })),
  endpoint: Type.Optional(nullable(Type.String({ maxLength: 300 }))),
  /** Where URLs of the endpoint name the bucket: in the path, as without it, or in the host name. Not for AWS. */
  url_style: Type.Optional(nullable(oneOf('path', 'host'))),
  access_key_id: Type.Optional(secret),
  secret_access_key: Type.Optional(secret),
})
export type AddDownloadCredential = Static<typeof AddDownloadCredential>
/** True if a credential for the same hosts or bucket was replaced. */
export const AddedDownloadCredential = Type.Object({ credential: DownloadCredential, replaced: flag })

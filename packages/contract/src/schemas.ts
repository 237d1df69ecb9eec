import type { Static, TSchema } from 'typebox'
import { testAnswers } from './headers.ts'
import { maxFileNameLength, maxUrlLength } from './limits.ts'
import { Type } from './type.ts'

const uuid = Type.String({ format: 'uuid' })
const dateTime = Type.String({ format: 'date-time' })
/** Client generators handle a list of two types better than `anyOf`. */
const nullable = <S extends TSchema>(schema: S) =>
  Type.Unsafe<Static<S> | null>({ ...schema, type: [(schema as unknown as { type: string }).type, 'null'] })

export const JobType = Type.String({ enum: ['malware', 'nsfw_image', 'nsfw_text'], description: 'Kind of job' })

export const ScanResultType = Type.Unsafe<'pending' | 'clean' | 'threat' | 'error'>({
  type: 'string',
  enum: ['pending', 'clean', 'threat', 'error'],
  description: 'pending until the job completes, then clean, threat or error; a completed status never changes',
})
export type ScanResultType = Static<typeof ScanResultType>

export const TestAnswer = Type.Unsafe<(typeof testAnswers)[number]>({
  type: 'string',
  enum: testAnswers,
  description: 'Response that a request with a test key can ask for',
})
export type TestAnswer = Static<typeof TestAnswer>

const metadataText =
  'Hashes and scores. Where external engines are configured, `engines` is JSON text: a list of objects with name, version, verdict and milliseconds; `outvoted` names findings with too few votes. `revised_status`, `revised_at` and `revised_reason` tell what became known since. `receipt` is the signed result, if it was asked for.'

export const ScanResult = Type.Object({
  id: Type.String({ format: 'uuid', description: 'Identifier of the scan job' }),
  scan_type: JobType,
  status: ScanResultType,
  content_length: Type.Integer({ format: 'int64', minimum: 0, description: 'Size of the scanned content in bytes' }),
  content_type: Type.String({ description: 'Media type detected by inspecting the content itself' }),
  signals: Type.Optional(
    nullable(Type.Array(Type.String(), { description: 'Names of the threats found, or the reason for an error' })),
  ),
  metadata: Type.Optional(nullable(Type.Record(Type.String(), Type.String(), { description: metadataText }))),
  created_at: Type.String({ format: 'date-time', description: 'Time the job was first submitted' }),
  completed_at: Type.Optional(nullable(Type.String({ format: 'date-time', description: 'Time the job completed' }))),
  content_name: Type.Optional(Type.String({ description: 'Name of the content, if known' })),
})
export type ScanResult = Static<typeof ScanResult>

export const ScanReceipt = Type.Object({ id: uuid })

const url = { format: 'uri', maxLength: maxUrlLength }
const name = { minLength: 1, maxLength: maxFileNameLength }
const fileUrl = Type.String({ ...url, description: 'URL of the file to download and scan' })
const fileName = nullable(Type.String({ ...name, description: 'Name to associate with the content' }))
const callbackUrl = Type.String({ ...url, description: 'Webhook address that receives the result' })

export const ScanUrlCommand = Type.Object({ file_url: fileUrl, file_name: Type.Optional(fileName) })

export const SubmitUrlCommand = Type.Object({
  file_url: fileUrl,
  file_name: Type.Optional(fileName),
  callback_url: Type.Optional(nullable(callbackUrl)),
})

const file = Type.String({ contentMediaType: 'application/octet-stream', description: 'The content to scan' })
const formFileName = Type.String({
  ...name,
  description: 'Name to associate with the content; takes precedence over the filename of the part',
})

export const ScanFileForm = Type.Object({ file, file_name: Type.Optional(formFileName) })

export const SubmitFileForm = Type.Object({
  file,
  file_name: Type.Optional(formFileName),
  callback_url: Type.Optional(callbackUrl),
})

export const Account = Type.Object(
  {
    plan: Type.String({ description: 'Plan name' }),
    credit_limit: Type.Integer({ format: 'int32', description: 'Credits allocated for the current billing period' }),
    credit_remaining: Type.Integer({ format: 'int32', description: 'Credits left in the current billing period' }),
    created_date: dateTime,
    period_start_date: dateTime,
    period_end_date: dateTime,
  },
  { additionalProperties: false },
)
export type Account = Static<typeof Account>

const problemFields = {
  type: Type.Optional(
    nullable(Type.String({ format: 'uri', description: 'Identifies the kind of problem; opens in a browser' })),
  ),
  title: Type.Optional(nullable(Type.String())),
  status: Type.Optional(nullable(Type.Integer({ format: 'int32' }))),
  detail: Type.Optional(nullable(Type.String())),
  instance: Type.Optional(nullable(Type.String({ description: 'The request path' }))),
  traceId: Type.String({ description: 'W3C trace id, which the log of the service also contains' }),
}

export const ProblemDetails = Type.Object(problemFields)
export type ProblemDetails = Static<typeof ProblemDetails>

export const ValidationProblemDetails = Type.Object({
  ...problemFields,
  errors: Type.Record(Type.String(), Type.Array(Type.String()), {
    description: 'Every invalid field with its messages',
  }),
})
export type ValidationProblemDetails = Static<typeof ValidationProblemDetails>

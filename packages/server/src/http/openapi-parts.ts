import {
  headers,
  maxKeyLength,
  maxWaitSeconds,
  type Operation,
  type ProblemKind,
  problemKinds,
  receiptKeysPath,
  type ScanKind,
  type ScanMode,
} from '@assay/contract'
import {
  adminPath,
  adminRoutes,
  csrfHeader,
  exportFormats,
  findRowSchema,
  type Route,
  type TSchema,
} from '@assay/contract/admin'
import { statusOf, toProblemDetails } from './problem-response.ts'

export const idParameter = {
  name: 'id',
  in: 'path',
  required: true,
  description: 'Identifier of the job, as returned when it was submitted',
  schema: { type: 'string', format: 'uuid' },
}

export const waitParameter = {
  name: 'wait',
  in: 'query',
  description: 'Seconds to wait for a pending job. The response is sent as soon as the job completes.',
  schema: { type: 'integer', minimum: 0, maximum: maxWaitSeconds, default: 0 },
}

export const receiptParameter = {
  name: 'receipt',
  in: 'query',
  description:
    `\`1\` adds \`metadata.receipt\` to a completed result: the result, signed (JWS, Ed25519). The keys that verify ` +
    `it are at \`${receiptKeysPath}\`.`,
  schema: { type: 'string', enum: ['1'] },
}

export const keyParameter = {
  name: headers.idempotencyKey,
  in: 'header',
  description: 'Repeating a request with the same key within a day returns the first response and is charged once.',
  schema: { type: 'string', minLength: 1, maxLength: maxKeyLength },
}

export const testParameter = {
  name: headers.test,
  in: 'header',
  description: 'The response that a request with a test key asks for. Other keys ignore this header.',
  schema: { $ref: '#/components/schemas/TestAnswer' },
  // Without an example the reference would send the first value of the schema with every request.
  examples: { default: { summary: 'Not sent', 'x-disabled': true } },
}

/** Headers of responses. */
export const headerDescriptions = {
  [headers.creditLimit]: { description: 'Credits of the current billing period', schema: { type: 'integer' } },
  [headers.creditRemaining]: { description: 'Credits left after this request', schema: { type: 'integer' } },
  [headers.rateLimit]: { description: 'The rate window, such as 1m', schema: { type: 'string' } },
  [headers.rateRemaining]: { description: 'Requests left in the current window', schema: { type: 'integer' } },
  [headers.rateReset]: { description: 'When the window ends', schema: { type: 'string', format: 'date-time' } },
  [headers.retryAfter]: { description: 'Minimum number of seconds to wait', schema: { type: 'integer', minimum: 1 } },
  [headers.result]: {
    description: 'Identifier of the new job, the same as id',
    schema: { type: 'string', format: 'uuid' },
  },
}

const exampleId = '0199a3c5-52f1-7c39-8f0e-6f1d5d0f6a3b'
const hashes = {
  hash_sha1: '3395856ce81f2b7382dee72602f798b642f14140',
  hash_sha256: '275a021bbfb6489e54d471899f7db9d1663fc695ec2fe2a2c4538aabf651fd0f',
}
const times = { created_at: '2026-01-31T09:30:00.000Z', completed_at: '2026-01-31T09:30:00.042Z' }

const malwareResult = {
  id: exampleId,
  scan_type: 'malware',
  status: 'threat',
  content_length: 68,
  content_type: 'text/plain',
  signals: ['Virus:Eicar-Test-Signature'],
  metadata: hashes,
  ...times,
  content_name: 'eicar.com',
}

const imageResult = {
  id: exampleId,
  scan_type: 'nsfw_image',
  status: 'clean',
  content_length: 48213,
  content_type: 'image/jpeg',
  signals: [],
  metadata: {
    ...hashes,
    classification_clean: '0.9921',
    classification_pornography: '0.0031',
    classification_sexy: '0.0048',
  },
  ...times,
  content_name: 'holiday.jpg',
}

export const examples = {
  receipt: { id: exampleId },
  result: (kind: ScanKind) => (kind === 'malware' ? malwareResult : imageResult),
  account: {
    plan: 'standard',
    credit_limit: 100000,
    credit_remaining: 99958,
    created_date: '2026-01-31T09:00:00.000Z',
    period_start_date: '2026-01-31T09:00:00.000Z',
    period_end_date: '2026-02-28T09:00:00.000Z',
  },
  urlCommand: (kind: ScanKind, mode: ScanMode) => ({
    file_url: kind === 'malware' ? 'https://example.com/setup.exe' : 'https://example.com/holiday.jpg',
    file_name: kind === 'malware' ? 'setup.exe' : 'holiday.jpg',
    ...(mode === 'async' ? { callback_url: 'https://example.com/hooks/assay' } : {}),
  }),
  problem(kind: ProblemKind, operation?: Operation) {
    const context = {
      origin: 'https://scan.example.com',
      instance: operation?.path.replace('{id}', exampleId) ?? '/v1/malware/scan/file',
      traceId: '00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01',
    }
    if (kind === 'validation') return toProblemDetails({ kind, errors: toErrors(operation) }, context)
    if (kind === 'rate-limited') return toProblemDetails({ kind, retryAfterSeconds: 17 }, context)
    const { title, meaning: detail } = problemKinds[kind]
    const { origin, instance, traceId } = context
    return { type: `${origin}/problems/${kind}`, title, status: statusOf[kind], detail, instance, traceId }
  },
}

const toErrors = (operation: Operation | undefined): Record<string, string[]> => {
  if (operation?.does === 'result') return { id: ['The job could not be found.'] }
  if (operation?.does === 'url') return { file_url: ['file_url must not be empty.'] }
  return { file: ['file must not be empty.'] }
}

export const adminTag = {
  name: 'Admin',
  description:
    'Everything that the console does. Browsers use a session: a cookie and, for changes, the token of ' +
    `\`GET ${adminPath}/session\` in \`${csrfHeader}\`. Scripts send the operator token as \`Authorization: Bearer\`.`,
}

export const adminSecurity = {
  session: {
    type: 'apiKey',
    in: 'cookie',
    name: 'assay_session',
    description: 'Over TLS the name of the cookie is `__Host-assay_session`.',
  },
  csrf: { type: 'apiKey', in: 'header', name: csrfHeader },
  operatorToken: { type: 'http', scheme: 'bearer' },
}

export type Json = Record<string, unknown>

/** The paths of the admin API, made from its route table. */
export function toAdminPaths(): Record<string, Json> {
  const paths: Record<string, Json> = {}
  for (const [name, route] of Object.entries(adminRoutes) as [string, Route][]) {
    const path = adminPath + route.path
    paths[path] = { ...paths[path], [route.method.toLowerCase()]: toAdminOperation(name, route) }
  }
  return paths
}

function toAdminOperation(name: string, route: Route): Json {
  const { path, access, summary, query, body, answer: answerSchema } = route
  const isList = findRowSchema(route) !== undefined
  return {
    operationId: `admin_${name}`,
    tags: [adminTag.name],
    summary,
    description: audiences[access],
    security: toSecurity(route),
    parameters: [...toPathParameters(path), ...toQueryParameters(query), ...(isList ? [formatParameter] : [])],
    ...(body === undefined ? {} : { requestBody: { required: true, content: toJsonBody(body) } }),
    responses: {
      ...(answerSchema === undefined
        ? { 204: { description: 'Done. No body.' } }
        : { 200: { description: 'The result', content: { ...toJsonBody(answerSchema), ...(isList ? csvBody : {}) } } }),
      default: { description: 'The request is rejected. `type` links to an explanation.', content: problemBody },
    },
  }
}

const audiences: Record<Route['access'], string> = {
  anyone: 'For anyone.',
  'signed-in': 'For members with a session.',
  account: 'For members of an account.',
  owner: 'For owners of the account.',
  operator: 'For operators.',
}

function toSecurity({ access, method }: Route): Json[] {
  if (access === 'anyone') return []
  const session = { session: [], ...(method === 'GET' ? {} : { csrf: [] }) }
  return access === 'operator' ? [session, { operatorToken: [] }] : [session]
}

const toPathParameters = (path: string) =>
  [...path.matchAll(/\{(\w+)\}/g)].map(([, name]) => ({ name, in: 'path', required: true, schema: { type: 'string' } }))

function toQueryParameters(query: TSchema | undefined) {
  const { properties = {} } = (query ?? {}) as { properties?: Record<string, TSchema> }
  return Object.entries(properties).map(([name, schema]) => ({ name, in: 'query', schema }))
}

const formatParameter = {
  name: 'format',
  in: 'query',
  description: 'Exports the list as a file: all its pages, or what a list without pages shows.',
  schema: { type: 'string', enum: exportFormats },
}

const csvBody = { 'text/csv': { schema: { type: 'string' } } }
const toJsonBody = (schema: TSchema) => ({ 'application/json': { schema } })
const problemBody = { 'application/problem+json': { schema: { $ref: '#/components/schemas/ProblemDetails' } } }

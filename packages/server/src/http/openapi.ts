import {
  Account,
  headers,
  maxContentBytes,
  maxKeyLength,
  maxWaitSeconds,
  type Operation,
  operations,
  ProblemDetails,
  problemKinds,
  ScanFileForm,
  ScanReceipt,
  ScanResult,
  ScanUrlCommand,
  SubmitFileForm,
  SubmitUrlCommand,
  testAnswers,
  ValidationProblemDetails,
} from '@assay/contract'
import { adminPath, adminRoutes, csrfHeader, type Route, type TSchema } from '@assay/contract/admin'
import { examples } from './openapi-examples.ts'

type Json = Record<string, unknown>

const schemas = {
  Account,
  ProblemDetails,
  ScanFileForm,
  ScanReceipt,
  ScanResult,
  ScanUrlCommand,
  SubmitFileForm,
  SubmitUrlCommand,
  ValidationProblemDetails,
}
type SchemaName = keyof typeof schemas

/** Describes the interface as OpenAPI 3.1, generated from the contract. */
export function toOpenApi(origin: string, version: string): Json {
  const paths: Record<string, Json> = {}
  for (const operation of operations) {
    const path = paths[operation.path] ?? {}
    path[operation.method.toLowerCase()] = toOperation(operation)
    paths[operation.path] = path
  }
  return {
    openapi: '3.1.0',
    info: {
      title: 'Assay',
      version,
      summary: 'Is it safe? Malware in any file, NSFW content in images.',
      description:
        'Scan content by upload or by URL, in one call or in the background. Send your key in the `X-API-Key` header. ' +
        'One scan costs one credit; a rejected request costs nothing.',
      license: { name: 'Apache-2.0', identifier: 'Apache-2.0' },
    },
    servers: [{ url: origin === '' ? '/' : origin }],
    security: [{ apiKey: [] }],
    tags: [
      { name: 'Malware', description: 'Malware in any file' },
      { name: 'NSFW images', description: 'NSFW content in JPEG, PNG, GIF and WebP images' },
      { name: 'General', description: 'The account, and a connectivity test' },
      adminTag,
    ],
    paths: { ...paths, ...toAdminPaths() },
    components: {
      securitySchemes: { apiKey: { type: 'apiKey', in: 'header', name: headers.apiKey }, ...adminSecurity },
      schemas,
      headers: headerDescriptions,
    },
  }
}

function toOperation(operation: Operation): Json {
  return {
    operationId: operation.id,
    tags: ['kind' in operation ? (operation.kind === 'malware' ? 'Malware' : 'NSFW images') : 'General'],
    summary: operation.summary,
    ...('mode' in operation
      ? {
          description: describeLimit(operation),
          parameters: [keyParameter, testParameter],
          requestBody: toRequestBody(operation),
        }
      : { parameters: [...(operation.does === 'result' ? [idParameter, waitParameter] : []), testParameter] }),
    responses: toResponses(operation),
  }
}

const describeLimit = ({ kind, mode }: Operation & { does: 'file' | 'url' }) =>
  `Content up to ${maxContentBytes[kind][mode] / 1024 / 1024} MB. Costs 1 credit.`

const idParameter = {
  name: 'id',
  in: 'path',
  required: true,
  description: 'Identifier of the job, as returned when it was submitted',
  schema: { type: 'string', format: 'uuid' },
}

const waitParameter = {
  name: 'wait',
  in: 'query',
  description: 'Seconds to wait for a pending job. The response is sent as soon as the job completes.',
  schema: { type: 'integer', minimum: 0, maximum: maxWaitSeconds, default: 0 },
}

const keyParameter = {
  name: headers.idempotencyKey,
  in: 'header',
  description: 'Repeating a request with the same key within a day returns the first response and is charged once.',
  schema: { type: 'string', minLength: 1, maxLength: maxKeyLength },
}

const testParameter = {
  name: headers.test,
  in: 'header',
  description: 'The response that a request with a test key asks for. Other keys ignore this header.',
  schema: { type: 'string', enum: testAnswers },
}

function toRequestBody({ does, mode, kind }: Operation & { does: 'file' | 'url' }): Json {
  const bodies = {
    file: { sync: 'ScanFileForm', async: 'SubmitFileForm' },
    url: { sync: 'ScanUrlCommand', async: 'SubmitUrlCommand' },
  } as const
  const schema = toRef(bodies[does][mode])
  return {
    required: true,
    content:
      does === 'file'
        ? { 'multipart/form-data': { schema } }
        : { 'application/json': { schema, example: examples.urlCommand(kind, mode) } },
  }
}

function toResponses(operation: Operation): Json {
  const isScan = operation.does === 'file' || operation.does === 'url'
  return {
    ...toSuccess(operation),
    ...(isScan ? { 400: toProblemResponse('malformed-request') } : {}),
    401: { description: 'The key is missing or invalid, or the subscription has expired. No body.' },
    403: toResponse('No credits are left. No body.'),
    ...(isScan ? { 415: toProblemResponse('unsupported-media-type') } : {}),
    ...(isScan && operation.does === 'url' ? { 413: toProblemResponse('content-too-large') } : {}),
    ...(isScan || operation.does === 'result'
      ? { 422: toResponse(problemKinds.validation.meaning, toProblemBody('validation', operation)) }
      : {}),
    429: toRetryResponse('rate-limited', operation),
    500: toProblemResponse(isScan ? 'engine-unavailable' : 'internal'),
    503: toRetryResponse(
      !isScan ? 'unavailable' : operation.mode === 'sync' ? 'overloaded' : 'storage-full',
      operation,
    ),
  }
}

/** Responses that say in Retry-After when to retry. */
const toRetryResponse = (
  kind: 'rate-limited' | 'overloaded' | 'unavailable' | 'storage-full',
  operation: Operation,
): Json => ({
  description: problemKinds[kind].meaning,
  headers: { ...creditHeaders, [headers.retryAfter]: refHeader(headers.retryAfter) },
  content: toProblemBody(kind, operation),
})

function toSuccess(operation: Operation): Json {
  switch (operation.does) {
    case 'ping':
      return { 200: toResponse('The service is reachable and the key is valid. No body.') }
    case 'account':
      return { 200: toResponse('The account', toJsonContent('Account', examples.account)) }
    case 'result':
      return {
        200: toResponse('The current state of the job', toJsonContent('ScanResult', examples.result(operation.kind))),
        304: toResponse('The job is completed and its ETag matches If-None-Match. No body.'),
      }
    default:
      return operation.mode === 'sync'
        ? {
            201: toResponse('The completed job', toJsonContent('ScanResult', examples.result(operation.kind))),
          }
        : {
            202: withResultHeader(toResponse('The job is accepted', toJsonContent('ScanReceipt', examples.receipt))),
          }
  }
}

const toRef = (name: SchemaName) => ({ $ref: `#/components/schemas/${name}` })
const refHeader = (name: string) => ({ $ref: `#/components/headers/${name}` })
const toJsonContent = (name: SchemaName, example: unknown) => ({ 'application/json': { schema: toRef(name), example } })

function toProblemBody(kind: keyof typeof problemKinds, operation?: Operation): Json {
  const schema = toRef(kind === 'validation' ? 'ValidationProblemDetails' : 'ProblemDetails')
  return { 'application/problem+json': { schema, example: examples.problem(kind, operation) } }
}

const toProblemResponse = (kind: keyof typeof problemKinds) =>
  toResponse(problemKinds[kind].meaning, toProblemBody(kind))

const toResponse = (description: string, content?: Json): Json => ({
  description,
  headers: { ...creditHeaders, ...rateHeaders },
  ...(content === undefined ? {} : { content }),
})

const withResultHeader = (response: Json): Json => ({
  ...response,
  headers: { ...(response.headers as Json), [headers.result]: refHeader(headers.result) },
})

const headerDescriptions = {
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

const refHeaders = (...names: string[]) => Object.fromEntries(names.map((name) => [name, refHeader(name)]))
const creditHeaders = refHeaders(headers.creditLimit, headers.creditRemaining)
const rateHeaders = refHeaders(headers.rateLimit, headers.rateRemaining, headers.rateReset)

const adminTag = {
  name: 'Admin',
  description:
    'Everything that the console does. Browsers use a session: a cookie and, for changes, the token of ' +
    `\`GET ${adminPath}/session\` in \`${csrfHeader}\`. Scripts send the operator token as \`Authorization: Bearer\`.`,
}

const adminSecurity = {
  session: { type: 'apiKey', in: 'cookie', name: 'assay_session' },
  csrf: { type: 'apiKey', in: 'header', name: csrfHeader },
  operatorToken: { type: 'http', scheme: 'bearer' },
}

/** The paths of the admin API, made from its route table. */
function toAdminPaths(): Record<string, Json> {
  const paths: Record<string, Json> = {}
  for (const [name, route] of Object.entries(adminRoutes) as [string, Route][]) {
    const path = adminPath + route.path
    paths[path] = { ...paths[path], [route.method.toLowerCase()]: toAdminOperation(name, route) }
  }
  return paths
}

function toAdminOperation(name: string, route: Route): Json {
  const { path, access, summary, query, body, answer: answerSchema } = route
  return {
    operationId: `admin_${name}`,
    tags: [adminTag.name],
    summary,
    description: audiences[access],
    security: toSecurity(route),
    parameters: [...toPathParameters(path), ...toQueryParameters(query)],
    ...(body === undefined ? {} : { requestBody: { required: true, content: toJsonBody(body) } }),
    responses: {
      ...(answerSchema === undefined && path.endsWith('.csv')
        ? { 200: { description: 'The table', content: { 'text/csv': { schema: { type: 'string' } } } } }
        : answerSchema === undefined
          ? { 204: { description: 'Done. No body.' } }
          : { 200: { description: 'The result', content: toJsonBody(answerSchema) } }),
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

const toJsonBody = (schema: TSchema) => ({ 'application/json': { schema } })
const problemBody = { 'application/problem+json': { schema: toRef('ProblemDetails') } }

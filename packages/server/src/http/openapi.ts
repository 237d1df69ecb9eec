import {
  Account,
  headers,
  JobType,
  maxContentBytes,
  type Operation,
  operations,
  ProblemDetails,
  problemKinds,
  ScanFileForm,
  ScanReceipt,
  ScanResult,
  ScanResultType,
  ScanUrlCommand,
  SubmitFileForm,
  SubmitUrlCommand,
  TestAnswer,
  ValidationProblemDetails,
  webhookHeaders,
} from '@assay/contract'
import {
  adminSecurity,
  adminTag,
  examples,
  headerDescriptions,
  idParameter,
  type Json,
  keyParameter,
  receiptParameter,
  testParameter,
  toAdminPaths,
  waitParameter,
} from './openapi-parts.ts'

/** Version of the interface, which changes less often than Assay. */
const interfaceVersion = '1.0'

const schemas = {
  Account,
  JobType,
  ProblemDetails,
  ScanFileForm,
  ScanReceipt,
  ScanResult,
  ScanResultType,
  ScanUrlCommand,
  SubmitFileForm,
  SubmitUrlCommand,
  TestAnswer,
  ValidationProblemDetails,
}
type SchemaName = keyof typeof schemas

/** Describes the interface as OpenAPI 3.1, generated from the contract. */
export function toOpenApi(origin: string): Json {
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
      version: interfaceVersion,
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
      { name: 'Webhooks', description: 'What Assay sends to your `callback_url`' },
      { name: 'General', description: 'The account, and a connectivity test' },
      adminTag,
    ],
    paths: { ...paths, ...toAdminPaths() },
    webhooks: { scanCompleted: { post: webhook }, scanRevised: { post: revisionWebhook } },
    components: {
      securitySchemes: { apiKey: { type: 'apiKey', in: 'header', name: headers.apiKey }, ...adminSecurity },
      schemas: { ...schemas, ScanResult: withNamedEnums(ScanResult) },
      headers: headerDescriptions,
    },
  }
}

function toRef(name: SchemaName) {
  return { $ref: `#/components/schemas/${name}` }
}

/** Refers to the enumerations among the properties by name, so that generators make one type of each. */
function withNamedEnums({ properties, ...rest }: typeof ScanResult): Json {
  const named = new Map<unknown, SchemaName>([
    [JobType, 'JobType'],
    [ScanResultType, 'ScanResultType'],
  ])
  const referred = Object.entries(properties).map(([key, schema]) => {
    const name = named.get(schema)
    return [key, name === undefined ? schema : toRef(name)]
  })
  return { ...rest, properties: Object.fromEntries(referred) }
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
      : {
          parameters: [
            ...(operation.does === 'result' ? [idParameter, waitParameter, receiptParameter] : []),
            testParameter,
          ],
        }),
    responses: toResponses(operation),
  }
}

/** The delivery of a result to the `callback_url` of a submission. */
const webhook = {
  operationId: 'scanCompleted',
  tags: ['Webhooks'],
  summary: 'The result of a background scan',
  description:
    'Sent to `callback_url` when the job completes, until the receiver answers with 2xx. Verify one of the signatures ' +
    'over the bytes of the body before you parse it. A result can arrive more than once, each time with the same ' +
    `\`${webhookHeaders.id}\`.`,
  security: [],
  parameters: [
    toWebhookHeader(webhookHeaders.signature, 'HMAC-SHA256 of the body with the webhook secret, in hexadecimal', {
      pattern: '^[0-9a-f]{64}$',
    }),
    toWebhookHeader(webhookHeaders.id, 'Identifier of the delivery, the same in each attempt', { format: 'uuid' }),
    toWebhookHeader(webhookHeaders.timestamp, 'Time of this attempt in seconds since 1970', { pattern: '^[0-9]+$' }),
    toWebhookHeader(
      webhookHeaders.standardSignature,
      'Signatures of Standard Webhooks over id, timestamp and body: one, or two for a day after the secret was rotated',
      { pattern: '^v1,[A-Za-z0-9+/=]+( v1,[A-Za-z0-9+/=]+)*$' },
    ),
  ],
  requestBody: { required: true, content: toJsonContent('ScanResult', examples.result('malware')) },
  responses: {
    '2XX': { description: 'The result was received.' },
    410: { description: 'The receiver wants no more attempts.' },
    default: { description: 'Assay tries again later.' },
  },
}

/** The delivery of a revision to the URL that the account has set. */
const revisionWebhook = {
  ...webhook,
  operationId: 'scanRevised',
  summary: 'A revision of an earlier result',
  description:
    'Sent to the URL that the account has set, when new knowledge about the hash of the content changes what counts. ' +
    'The result itself stays as it was; `metadata` has `revised_status`, `revised_at` and `revised_reason`. Signatures ' +
    'and attempts are those of other webhooks.',
  requestBody: {
    required: true,
    content: {
      'application/json': {
        schema: {
          allOf: [
            toRef('ScanResult'),
            { type: 'object', properties: { type: { type: 'string', const: 'scan.revised' } }, required: ['type'] },
          ],
        },
      },
    },
  },
}

function toWebhookHeader(name: string, description: string, form: Json): Json {
  return { name, in: 'header', required: true, description, schema: { type: 'string', ...form } }
}

const describeLimit = ({ kind, mode }: Operation & { does: 'file' | 'url' }) =>
  `Content up to ${maxContentBytes[kind][mode] / 1024 / 1024} MB. Costs 1 credit.`

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
    403: toResponse(
      'No credits are left: no body. Or the key is restricted, and the body says to what.',
      toProblemBody('key-restricted'),
    ),
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

const refHeader = (name: string) => ({ $ref: `#/components/headers/${name}` })
function toJsonContent(name: SchemaName, example: unknown) {
  return { 'application/json': { schema: toRef(name), example } }
}

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

const refHeaders = (...names: string[]) => Object.fromEntries(names.map((name) => [name, refHeader(name)]))
const creditHeaders = refHeaders(headers.creditLimit, headers.creditRemaining)
const rateHeaders = refHeaders(headers.rateLimit, headers.rateRemaining, headers.rateReset)

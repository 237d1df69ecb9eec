import {
  adminPath,
  adminRoutes,
  csrfHeader,
  exportFormats,
  findRowSchema,
  type Route,
  type TSchema,
} from '@assay/contract/admin'

type Json = Record<string, unknown>

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

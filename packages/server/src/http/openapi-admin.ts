import { adminPath, adminRoutes, csrfHeader, type Route, type TSchema } from '@assay/contract/admin'

type Json = Record<string, unknown>

export const adminTag = {
  name: 'Admin',
  description:
    'Everything the console does. A browser has a session: a cookie, and for changes the token of ' +
    `\`GET ${adminPath}/session\` in \`${csrfHeader}\`. A script sends the operator token as \`Authorization: Bearer\`.`,
}

export const adminSecurity = {
  session: { type: 'apiKey', in: 'cookie', name: 'assay_session' },
  csrf: { type: 'apiKey', in: 'header', name: csrfHeader },
  operatorToken: { type: 'http', scheme: 'bearer' },
}

/** The admin API, made from its route table. */
export function toAdminPaths(): Record<string, Json> {
  const paths: Record<string, Json> = {}
  for (const [name, route] of Object.entries(adminRoutes) as [string, Route][]) {
    const path = adminPath + route.path
    paths[path] = { ...paths[path], [route.method.toLowerCase()]: toOperation(name, route) }
  }
  return paths
}

function toOperation(name: string, route: Route): Json {
  const { path, access, summary, query, body, answer } = route
  return {
    operationId: `admin_${name}`,
    ...{ tags: [adminTag.name], summary, description: audiences[access], security: toSecurity(route) },
    parameters: [...toPathParameters(path), ...toQueryParameters(query)],
    ...(body === undefined ? {} : { requestBody: { required: true, content: toJson(body) } }),
    responses: {
      ...(answer === undefined && path.endsWith('.csv')
        ? { 200: { description: 'The table', content: { 'text/csv': { schema: { type: 'string' } } } } }
        : answer === undefined
          ? { 204: { description: 'It is done. No body.' } }
          : { 200: { description: 'The answer', content: toJson(answer) } }),
      default: { description: 'It was refused; `type` leads to the reason', content: problem },
    },
  }
}

const audiences: Record<Route['access'], string> = {
  anyone: 'For anyone.',
  'signed-in': 'For people with a session.',
  account: 'For those who hold an account.',
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

const toJson = (schema: TSchema) => ({ 'application/json': { schema } })
const problem = { 'application/problem+json': { schema: { $ref: '#/components/schemas/ProblemDetails' } } }

import { type Operation, operations } from '@assay/contract'
import {
  type AdminRouteName,
  adminPath,
  adminRoutes,
  consoleScanPath,
  csrfHeader,
  findRowSchema,
  mayUse,
  type Route,
} from '@assay/contract/admin'
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import type { Admission } from '../domain/accounts/admission.ts'
import { isSameSecret, type Origin } from '../domain/console/authentication.ts'
import type { SignIn } from '../domain/console/sign-in.ts'
import { type Throttle, toTokenSubject } from '../domain/console/throttle.ts'
import type { AuditLog } from '../domain/ports/operations.ts'
import { Problem } from '../domain/problem.ts'
import { requireValid } from '../domain/scans/check-submission.ts'
import { applyAdmission, prepareAdmission, toUse } from '../http/admission.ts'
import { leaveBodiesToHandlers, readJsonBody } from '../http/body.ts'
import { makeFileHandler, makeUrlHandler, type ScanDeps } from '../http/scans.ts'
import {
  type Audit,
  type Call,
  findDeviceToken,
  findSessionToken,
  getAccountId,
  type Handlers,
  type Who,
} from './call.ts'
import { sendExport, takeFormat } from './list-export.ts'

/** Registers every route of the admin API. All share one guard, and one check of query and body by their schemas. */
export function registerAdmin(app: FastifyInstance, deps: GuardDeps & { audit: AuditLog; handlers: Handlers }) {
  const guard = makeGuard(deps)
  leaveBodiesToHandlers(app)
  app.addHook('onSend', async (_request, reply, payload) => {
    reply.header('Cache-Control', 'no-store')
    return payload
  })
  for (const [name, route] of Object.entries(adminRoutes) as [AdminRouteName, Route][]) {
    const isChange = route.method !== 'GET'
    app.route({
      method: route.method,
      url: adminPath + route.path.replaceAll(/\{(\w+)\}/g, ':$1'),
      config: { strangerWeight: route.access === 'anyone' ? anyoneWeight : 1 },
      handler: async (request, reply) => {
        const who = await guard(route, request)
        const origin = toRequestOrigin(request)
        const exported =
          findRowSchema(route) !== undefined ? takeFormat(request.query as Record<string, unknown>) : undefined
        const input = await readInput(route, request, reply, exported?.rest)
        const audit = makeAudit(deps.audit, route, who, origin)
        const handle = async () => {
          const { atomically } = deps.audit
          const call = { who, origin, audit: audit.note, atomically, ...input, request, reply }
          const list = (page: object) =>
            callHandler(deps.handlers, name, { ...call, query: { ...input.query, ...page } })
          if (exported?.format !== undefined) return sendExport(reply, { route, format: exported.format, list })
          const answer = await callHandler(deps.handlers, name, call)
          if (isChange && !audit.hasNoted() && !unauditedRoutes.has(name)) await audit.note(`route.${name}`)
          return answer
        }
        const answer = isChange && !longRoutes.has(name) ? await deps.audit.atomically(handle) : await handle()
        return route.answer === undefined && answer === undefined ? reply.code(204).send() : answer
      },
    })
  }
}

/** Routes for anyone check a password or a token, which costs far more than refusing a request. */
const anyoneWeight = 25

const toRequestOrigin = (request: FastifyRequest): Origin => ({
  address: request.ip,
  agent: request.headers['user-agent'] ?? '',
  device: findDeviceToken(request),
})

/** Calls a handler by name. The route table pairs names and calls, which the types cannot express. */
const callHandler = (handlers: Handlers, name: AdminRouteName, call: unknown): Promise<unknown> =>
  (handlers[name] as (call: Call<AdminRouteName>) => Promise<unknown>)(call as Call<AdminRouteName>)

/** Routes that change nothing although they are no GET, and routes whose use cases write to the audit log themselves. */
const unauditedRoutes = new Set<AdminRouteName>([
  'findLink',
  'runSelfTest',
  'acceptLink',
  'signIn',
  'startSso',
  'finishSso',
  'linkSso',
])

/**
 * Routes that wait for something other than the database, such as the hash of a password, or whose failure must leave a
 * trace. Their handlers choose what to commit together.
 */
const longRoutes = new Set<AdminRouteName>([
  'acceptLink',
  'addListEntry',
  'changePassword',
  'finishSso',
  'linkSso',
  'makeBackup',
  'removeListEntry',
  'removeSignatures',
  'removeTotp',
  'renewRecoveryCodes',
  'runSelfTest',
  'signIn',
  'startSso',
  'startTotp',
  'testAccountAlertChannel',
  'testAlertChannel',
  'testWebhook',
  'unlinkSso',
  'updateSignatures',
  'uploadSignatures',
])

function makeAudit(log: AuditLog, { access }: Route, who: Who, { address }: Origin) {
  const ownAccount = access === 'operator' ? undefined : who.accountId
  let hasNoted = false
  const note: Audit = (action, target, { detail, accountId = ownAccount } = {}) => {
    hasNoted = true
    return log.note({ actor: who.actor, action, target, detail, accountId, address })
  }
  return { note, hasNoted: () => hasNoted }
}

async function readInput(
  route: Route,
  request: FastifyRequest,
  reply: FastifyReply,
  query = (request.query ?? {}) as Record<string, unknown>,
) {
  const params = request.params as Record<string, string>
  // PostgreSQL text cannot hold NUL, so no name or id can match: answer "not found" without asking the database.
  if (Object.values(params).some((value) => value.includes('\u0000'))) throw new Problem({ kind: 'not-found' })
  // The validator is loaded with the first request, because it would take a sixth of a second of each start.
  const { checkForm } = await import('@assay/contract/check-form')
  requireValid(route.query === undefined ? {} : checkForm(route.query, query))
  if (route.body === undefined) return { params, query, body: undefined }
  const body = await readJsonBody(request, reply)
  requireValid(checkForm(route.body, body))
  return { params, query, body }
}

type ConsoleScanDeps = GuardDeps &
  ScanDeps & { admission: Admission; consoleKeys: { getDigest(accountId: string): Promise<string> } }

/** Registers the scans of the console: the handlers of /v1, charged the same way, with a session instead of a key. */
export function registerConsoleScans(app: FastifyInstance, deps: ConsoleScanDeps) {
  const guard = makeGuard(deps)
  prepareAdmission(app)
  for (const operation of operations) {
    const handler = findScanHandler(operation, deps)
    if (handler === undefined) continue
    app.route({
      method: 'POST',
      url: consoleScanPath + operation.path.slice('/v1'.length),
      onRequest: async (request, reply) => {
        request.operationId = operation.id
        const who = await guard({ access: 'account', method: 'POST' }, request)
        const digest = await deps.consoleKeys.getDigest(getAccountId({ who }))
        const use = { ...toUse(operation), address: request.ip }
        applyAdmission(request, reply, await deps.admission.admitDigest(digest, use))
      },
      handler,
    })
  }
}

function findScanHandler(operation: Operation, deps: ScanDeps) {
  if (operation.does === 'file') return makeFileHandler(operation, deps)
  return operation.does === 'url' ? makeUrlHandler(operation, deps) : undefined
}

export type GuardDeps = { signIn: SignIn; throttle: Throttle; adminToken: string | undefined }

/** Makes the guard of all routes: it identifies the caller, checks their access, and the CSRF token of changes. */
function makeGuard({ signIn, throttle, adminToken }: GuardDeps) {
  return async (route: Pick<Route, 'access' | 'method' | 'servesSuspended'>, request: FastifyRequest): Promise<Who> => {
    if (route.access === 'anyone') return anonymous
    const who = await findCaller(request)
    if (who === undefined) throw new Problem({ kind: 'signed-out', detail: 'You are not signed in.' })
    if (route.access === 'signed-in' && who.memberId === null) {
      throw new Problem({
        kind: 'forbidden',
        detail: 'This route requires a session; the admin token is not sufficient.',
      })
    }
    if (!mayUse(route.access, who)) throw new Problem({ kind: 'forbidden', detail: toDenial(route.access, who) })
    if (needsAccount(route) && who.suspension !== undefined && route.servesSuspended !== true) {
      throw new Problem({ kind: 'forbidden', detail: toSuspensionNotice(who.suspension) })
    }
    const csrfToken = String(request.headers[csrfHeader.toLowerCase()] ?? '')
    if (route.method !== 'GET' && who.csrfToken !== null && !isSameSecret(who.csrfToken, csrfToken)) {
      throw new Problem({
        kind: 'forbidden',
        detail: `The request lacks ${csrfHeader} with the value from GET /admin/v1/session.`,
      })
    }
    return who
  }

  async function findCaller(request: FastifyRequest): Promise<Who | undefined> {
    const bearer = /^Bearer (.+)$/.exec(request.headers.authorization ?? '')?.[1]
    if (bearer !== undefined) return findOperatorScript(bearer, request.ip)
    const token = findSessionToken(request)
    const visitor = token === undefined ? undefined : await signIn.findVisitor(token)
    if (visitor === undefined) return undefined
    const { member, membership, sessionId, csrfToken } = visitor
    return {
      actor: member.email,
      isOperator: member.isOperator,
      accountId: membership?.accountId ?? null,
      accountRole: membership?.role ?? null,
      suspension: membership?.accountSuspendedAt ? { reason: membership.suspendedReason } : undefined,
      memberId: member.id,
      sessionId,
      csrfToken,
    }
  }

  /** Wrong tokens cause a pause for their network, during which the right one is refused as well. */
  async function findOperatorScript(token: string, address: string): Promise<Who | undefined> {
    if (adminToken === undefined) return undefined
    const subject = toTokenSubject(address)
    if (!isSameSecret(adminToken, token)) {
      await throttle.begin([subject])
      return undefined
    }
    await throttle.requireNoPause(subject)
    return { ...anonymous, actor: 'operator token', isOperator: true }
  }
}

/** The caller of a route for anyone. */
const anonymous: Who = {
  actor: '',
  isOperator: false,
  accountId: null,
  accountRole: null,
  suspension: undefined,
  memberId: null,
  sessionId: null,
  csrfToken: null,
}

const needsAccount = ({ access }: Pick<Route, 'access'>) => access === 'account' || access === 'owner'

const toSuspensionNotice = ({ reason }: { reason: string | null }) =>
  `The account is suspended${reason === null ? '.' : `: ${reason}`}`

function toDenial(access: Route['access'], who: Who): string {
  if (access === 'operator') return 'Only operators can do this.'
  if (who.accountId === null) return 'You do not belong to an account.'
  return 'Only owners of the account can do this.'
}

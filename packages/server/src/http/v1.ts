import { listDeliveriesOperation, type Operation, operations, type Account as WireAccount } from '@assay/contract'
import type { FastifyInstance, FastifyRequest } from 'fastify'
import type { Account } from '../domain/accounts/account.ts'
import type { Admission } from '../domain/accounts/admission.ts'
import type { Content } from '../domain/content/content.ts'
import type { AccountStore } from '../domain/ports/account-store.ts'
import type { JobContent } from '../domain/ports/content-store.ts'
import { Problem } from '../domain/problem.ts'
import type { Receipts } from '../domain/receipts.ts'
import type { DeliveryFeed } from '../domain/webhooks/delivery-feed.ts'
import {
  countFailedFastPath,
  getCaller,
  type KeyedOperation,
  makeAdmitHook,
  prepareAdmission,
  type StrangerLimit,
} from './admission.ts'
import { runBeforeParsing } from './body.ts'
import { abortWhenClientLeaves } from './request.ts'
import { type Handler, makeFileHandler, makeResultHandler, makeUrlHandler, readWait, type ScanDeps } from './scans.ts'

export type V1Deps<C extends Content = JobContent> = ScanDeps<C> & {
  admission: Admission
  wrongKeys: Pick<StrangerLimit, 'refuseTooMany'>
  accounts: Pick<AccountStore, 'findAccount'>
  receipts: Pick<Receipts, 'getScan'>
  /** Undefined in an HTTP process, which leaves the webhooks of an account to the main process. */
  deliveryFeed?: DeliveryFeed
  /** Aborts when the service stops: requests that wait for a result are answered with its current state. */
  draining: AbortSignal
}

/** Registers every operation of the contract and its extension, each behind the same admission hook. */
export function registerV1<C extends Content>(app: FastifyInstance, deps: V1Deps<C>) {
  prepareAdmission(app)
  app.decorateRequest('needsKey', true)
  countFailedFastPath(app, deps)
  const register = (operation: KeyedOperation, handlers: RouteHandlers) =>
    app.route({
      method: operation.method,
      url: operation.path.replace('{id}', ':id'),
      onRequest: makeAdmitHook(operation, deps),
      ...handlers,
    })
  for (const operation of operations) register(operation, makeRouteHandlers(operation, deps))
  const { deliveryFeed, draining } = deps
  if (deliveryFeed !== undefined) {
    register(listDeliveriesOperation, { handler: makeDeliveriesHandler({ deliveryFeed, draining }) })
  }
}

/** The functions of a route: its handler alone, or for one that reads the body, the hook that runs it. */
type RouteHandlers = { handler: Handler } | ReturnType<typeof runBeforeParsing>

function makeRouteHandlers<C extends Content>(operation: Operation, deps: V1Deps<C>): RouteHandlers {
  switch (operation.does) {
    case 'ping':
      return { handler: (_request, reply) => reply.send() }
    case 'account':
      return { handler: makeAccountHandler(deps) }
    case 'result':
      return { handler: makeResultHandler(operation, deps) }
    case 'file':
      return runBeforeParsing(makeFileHandler(operation, deps))
    case 'url':
      return runBeforeParsing(makeUrlHandler(operation, deps))
  }
}

function makeAccountHandler(deps: Pick<V1Deps, 'accounts'>): Handler {
  return async (request) => {
    const { accountId } = getCaller(request)
    const account = await deps.accounts.findAccount(accountId)
    if (account === undefined) throw new Error(`Account ${accountId} vanished after its request was admitted`)
    return toWireAccount(account)
  }
}

const toWireAccount = ({ plan, balance, createdAt }: Account): WireAccount => ({
  plan,
  credit_limit: balance.creditLimit,
  credit_remaining: balance.creditRemaining,
  created_date: createdAt.toISOString(),
  period_start_date: balance.period.start.toISOString(),
  period_end_date: balance.period.end.toISOString(),
})

/** Handles queries for the webhooks of the account since a given time. */
function makeDeliveriesHandler(deps: { deliveryFeed: DeliveryFeed; draining: AbortSignal }): Handler {
  return async (request, reply) => {
    const since = readSince(request)
    const signal = AbortSignal.any([abortWhenClientLeaves(reply), deps.draining])
    reply.header('Cache-Control', 'no-store')
    return deps.deliveryFeed.list(getCaller(request), since, { waitMs: readWait(request) * 1000, signal })
  }
}

function readSince(request: FastifyRequest): string | undefined {
  const { since } = request.query as { since?: unknown }
  if (since === undefined) return undefined
  if (typeof since === 'string' && timeFormat.test(since) && isCalendarDay(since)) return since
  const error = 'since must be a time such as 2026-01-31T12:00:00Z, or the until of an earlier answer.'
  throw new Problem({ kind: 'validation', errors: { since: [error] } })
}

/** JavaScript takes February 30 for March 2; PostgreSQL knows neither that day nor the year 0. */
const isCalendarDay = (text: string) =>
  !Number.isNaN(Date.parse(text)) && new Date(text).toISOString().slice(0, 10) === text.slice(0, 10)

const timeFormat = /^(?!0000)\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d{1,6})?Z$/

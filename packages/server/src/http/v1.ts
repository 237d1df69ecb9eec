import { listDeliveriesOperation, type Operation, operations, type Account as WireAccount } from '@assay/contract'
import type { FastifyInstance } from 'fastify'
import type { Account } from '../domain/accounts/account.ts'
import type { Admission } from '../domain/accounts/admission.ts'
import type { AccountStore } from '../domain/ports/account-store.ts'
import type { ContentStore, JobContents } from '../domain/ports/content-store.ts'
import type { Scanning } from '../domain/scans/scanning.ts'
import type { Submitting } from '../domain/scans/submitting.ts'
import type { AddressPolicy } from '../domain/scans/web-address.ts'
import type { DeliveryFeed } from '../domain/webhooks/delivery-feed.ts'
import { countFailedFastPath, getCaller, type KeyedOperation, makeAdmitHook, prepareAdmission } from './admission.ts'
import { makeDeliveriesHandler } from './deliveries.ts'
import { type Handler, makeFileHandler, makeResultHandler, makeUrlHandler } from './scans.ts'
import type { StrangerLimit } from './strangers.ts'

export type V1Deps = {
  admission: Admission
  wrongKeys: StrangerLimit
  accounts: AccountStore
  scanning: Scanning
  submitting: Submitting
  contents: ContentStore
  jobContents: JobContents
  policy: AddressPolicy
  deliveryFeed: DeliveryFeed
  /** Aborts when the service stops: requests that wait for a result are answered with its current state. */
  draining: AbortSignal
}

/** Registers every operation of the contract and its extension, each behind the same admission hook. */
export function registerV1(app: FastifyInstance, deps: V1Deps) {
  prepareAdmission(app)
  countFailedFastPath(app, deps)
  const register = (operation: KeyedOperation, handler: Handler) =>
    app.route({
      method: operation.method,
      url: operation.path.replace('{id}', ':id'),
      config: { needsKey: true },
      onRequest: makeAdmitHook(operation, deps),
      handler,
    })
  for (const operation of operations) register(operation, makeHandler(operation, deps))
  register(listDeliveriesOperation, makeDeliveriesHandler(deps))
}

function makeHandler(operation: Operation, deps: V1Deps): Handler {
  switch (operation.does) {
    case 'ping':
      return (_request, reply) => reply.send()
    case 'account':
      return makeAccountHandler(deps)
    case 'result':
      return makeResultHandler(operation, deps)
    case 'file':
      return makeFileHandler(operation, deps)
    case 'url':
      return makeUrlHandler(operation, deps)
  }
}

function makeAccountHandler(deps: { accounts: AccountStore }): Handler {
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

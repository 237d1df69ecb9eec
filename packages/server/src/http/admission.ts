import { setTimeout as sleep } from 'node:timers/promises'
import { headers, type listDeliveriesOperation, type Operation } from '@assay/contract'
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import { toPeriodText } from '../domain/accounts/account.ts'
import type { Admission, Admitted } from '../domain/accounts/admission.ts'
import type { KeyUse } from '../domain/accounts/keys.ts'
import { toIsoText } from '../domain/clock.ts'
import { toNetwork } from '../domain/console/throttle.ts'
import { newCache } from '../domain/new-cache.ts'
import type { Caller, Idempotency } from '../domain/ports/admission-gate.ts'
import { type FieldErrors, Problem } from '../domain/problem.ts'
import { checkIdempotencyKey, toFingerprint } from '../domain/scans/check-submission.ts'
import { findTestRefusal } from '../domain/test-mode.ts'
import { leaveBodiesToHandlers } from './body.ts'
import { listHeader } from './request.ts'

declare module 'fastify' {
  interface FastifyRequest {
    /** The account and key behind the request; set once the request is admitted. */
    caller: Caller | undefined
    /** The use of the key, set with `operationId`. */
    keyUse: KeyUse | undefined
    /** False while a request on the fast path is not yet counted against the rate limit. */
    isCounted: boolean
    /** The operation of the contract; set as soon as the route is known. */
    operationId: string | undefined
    /** Set on routes that admit only requests with a valid key. */
    needsKey?: boolean
  }
  interface FastifyContextConfig {
    /** As how many requests a request counts that has no key. */
    strangerWeight?: number
  }
}

type Deps = { admission: Admission }

/** An operation that needs an API key. */
export type KeyedOperation = Operation | typeof listDeliveriesOperation

/** More than the usual form around a file: two boundaries, a header and a few short fields. */
const formBytes = 4 * 1024

/**
 * Larger uploads pass the gate before they are read, because work in vain on a rejected one costs more than the extra
 * call: 1 MB of plain content takes tens of milliseconds of a core, an archive can take longer. A submission over 64 KB
 * is written to a file.
 */
const maxFastPathBytes = { sync: 1024 * 1024 + formBytes, async: 64 * 1024 }

/** Prepares a scope whose routes read bodies themselves and are admitted by a hook. */
export function prepareAdmission(app: FastifyInstance) {
  app.decorateRequest('caller', undefined)
  app.decorateRequest('keyUse', undefined)
  app.decorateRequest('isCounted', true)
  leaveBodiesToHandlers(app)
}

/**
 * Checks key, rate limit, restrictions and credit, in this order, before the body is read. Small uploads of a recent
 * caller take the fast path: they are counted together with their charge, in one transaction.
 */
export function makeAdmitHook(
  operation: KeyedOperation,
  { admission, wrongKeys }: Deps & { wrongKeys: Pick<StrangerLimit, 'refuseTooMany'> },
) {
  const isUpload = operation.does === 'file'
  const use = toUse(operation)
  const isSubmit = isUpload && operation.mode === 'async'
  const maxBytes = maxFastPathBytes[isSubmit ? 'async' : 'sync']
  // The promise matters on the fast path too: Node parses a body that arrived with its head before the request goes on,
  // and `readBody` then finds it whole.
  return async (request: FastifyRequest, reply: FastifyReply) => {
    request.operationId = operation.id
    request.keyUse = { ...use, address: request.ip }
    const keys = listHeader(request.raw, 'x-api-key')
    // A repeated scan must be recognized before any work, so it never takes the fast path.
    const canTakeFastPath =
      isUpload && isSmall(request, maxBytes) && (isSubmit || listIdempotencyKeys(request).length === 0)
    const recentCaller = canTakeFastPath ? admission.findRecentCaller(keys, request.keyUse) : undefined
    if (recentCaller === undefined) {
      const admitted = await admission.admitRequest(keys, request.keyUse)
      if (admitted.caller === undefined) await wrongKeys.refuseTooMany(request.ip)
      return applyAdmission(request, reply, withTestRefusal(request, admitted))
    }
    request.caller = recentCaller
    request.isCounted = false
  }
}

/** The use of a key by an operation. Deliveries show results of all kinds. */
export function toUse(operation: KeyedOperation): Omit<KeyUse, 'address'> {
  switch (operation.does) {
    case 'ping':
    case 'account':
      return { action: 'none', kind: 'all' }
    case 'deliveries':
      return { action: 'read', kind: 'all' }
    case 'result':
      return { action: 'read', kind: operation.kind }
    default:
      return { action: operation.mode === 'sync' ? 'scan' : 'submit', kind: operation.kind }
  }
}

/** Adds the refusal that a request with a test key asks for. A real refusal takes precedence. */
function withTestRefusal({ raw }: FastifyRequest, { caller, refused }: Admitted): Admitted {
  const testRefusal = caller?.isTest === true ? findTestRefusal(listHeader(raw, headers.test.toLowerCase())) : undefined
  return { caller, refused: refused ?? testRefusal }
}

/** Counts requests on the fast path that fail before their charge. The rate limit may reject them at that point. */
export function countFailedFastPath(app: FastifyInstance, { admission }: Deps) {
  app.setErrorHandler(async (error, request, reply) => {
    // With an unknown outcome the charge was sent, and the request may already be counted with it.
    const isCharged = error instanceof Problem && error.refusal.kind === 'outcome-unknown'
    const { keyUse } = request
    if (!request.isCounted && !isCharged && keyUse !== undefined) {
      applyAdmission(request, reply, await admission.admitRequest(listHeader(request.raw, 'x-api-key'), keyUse))
    }
    throw error
  })
}

/** Writes the credit and rate headers of an admission to the response, and throws its refusal. */
export function applyAdmission(request: FastifyRequest, reply: FastifyReply, { caller, refused }: Admitted) {
  request.isCounted = true
  if (caller !== undefined) {
    request.caller = caller
    reply.header(headers.creditLimit, caller.creditLimit)
    reply.header(headers.creditRemaining, caller.creditRemaining)
    if (refused?.refusal.kind !== 'rate-limited') {
      reply.header(headers.rateLimit, toPeriodText(caller.rate.periodSeconds))
      reply.header(headers.rateRemaining, caller.requestsRemaining)
      reply.header(headers.rateReset, toIsoText(caller.resetsAt))
    }
  }
  if (refused !== undefined) throw refused
}

export function getCaller(request: FastifyRequest): Caller {
  if (request.caller === undefined) throw new Error('A handler ran without admission')
  return request.caller
}

function isSmall({ raw }: FastifyRequest, maxBytes: number): boolean {
  const bytes = Number(raw.headers['content-length'])
  return bytes <= maxBytes && raw.headers.expect === undefined
}

const idempotencyHeader = headers.idempotencyKey
const idempotencyHeaderInLowerCase = idempotencyHeader.toLowerCase()

const listIdempotencyKeys = (request: FastifyRequest) => listHeader(request.raw, idempotencyHeaderInLowerCase)

/** Returns the errors of the Idempotency-Key header, under its name. */
export function checkIdempotency(request: FastifyRequest): FieldErrors {
  const keys = listIdempotencyKeys(request)
  if (keys.length === 0) return {}
  const errors = [
    ...(keys.length > 1 ? [`${idempotencyHeader} must not be given more than once.`] : []),
    ...checkIdempotencyKey(keys[0] ?? ''),
  ]
  return errors.length === 0 ? {} : { [idempotencyHeader]: errors }
}

/**
 * Returns the idempotency key of a request with a fingerprint of `inputs`, which tell a repeat from another request.
 * Test keys have a namespace of their own: a result without a scan must not answer a request for a scan.
 */
export function findIdempotency(request: FastifyRequest, inputs: (string | null)[]): Idempotency | undefined {
  const [key] = listIdempotencyKeys(request)
  if (key === undefined) return undefined
  const operation = `${request.caller?.isTest === true ? 'test ' : ''}${request.operationId ?? ''}`
  return { operation, key, fingerprint: toFingerprint(inputs) }
}

/** After a quiet time, a network may make as many requests at once as in this many seconds. */
const burstSeconds = 2
/** The longest wait for a turn; more requests of a network are refused at once. */
const maxWaitMs = 5000
const maxNetworks = 20_000

type StrangerLimitOptions = {
  /** Requests that a network may make, in the long run. */
  perSecond: number
  now?: () => number
}

/**
 * Limits the requests of strangers: those without a valid key. A network that makes too many gets its answers more
 * slowly, which holds back every client that waits for an answer before it sends the next request. Requests with a
 * valid key are never held back, whoever else uses their address.
 */
export function makeStrangerLimit({ perSecond, now = () => performance.now() }: StrangerLimitOptions) {
  /** Until when the requests of a network so far would take at the permitted rate. */
  const usedUntil = newCache<number>(maxNetworks)

  /** Returns the milliseconds until the turn of a request that counts as `weight` requests; undefined if it is too far. */
  function take(address: string, weight: number): number | undefined {
    const network = toNetwork(address)
    const at = now()
    const turnAt = Math.max(usedUntil.get(network) ?? Number.NEGATIVE_INFINITY, at - burstSeconds * 1000)
    const waitMs = Math.max(0, turnAt - at)
    if (waitMs > maxWaitMs) return undefined
    usedUntil.set(network, turnAt + (weight * 1000) / perSecond)
    return waitMs
  }

  return {
    /** Waits for the turn of a request. Throws if the network has too many requests that wait. */
    async waitForTurn(address: string, weight = 1): Promise<void> {
      const waitMs = take(address, weight)
      if (waitMs === undefined) throw newStrangerRefusal()
      if (waitMs > 0) await sleep(waitMs)
    },
    /** Answers a request whose key is not valid: throws after its turn if the network has made too many of them. */
    async refuseTooMany(address: string): Promise<void> {
      const waitMs = take(address, 1)
      if (waitMs === 0) return
      if (waitMs !== undefined) await sleep(waitMs)
      throw newStrangerRefusal()
    },
  }
}

export type StrangerLimit = ReturnType<typeof makeStrangerLimit>

/** The limit of requests for operations with a wrong key, or without one. */
export const makeWrongKeyLimit = () => makeStrangerLimit({ perSecond: 200 })

const newStrangerRefusal = () =>
  new Problem({
    kind: 'rate-limited',
    retryAfterSeconds: Math.ceil(maxWaitMs / 1000),
    detail: 'Your network makes too many requests without a valid key.',
  })

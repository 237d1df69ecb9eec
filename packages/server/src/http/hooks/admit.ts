import { headers, type Operation } from '@assay/contract'
import type { FastifyReply, FastifyRequest } from 'fastify'
import type { Admission } from '../../domain/accounts/admission.ts'
import { toPeriodText } from '../../domain/accounts/rate.ts'
import type { Caller } from '../../domain/ports/admission-gate.ts'
import { listHeader } from '../headers.ts'

declare module 'fastify' {
  interface FastifyRequest {
    /** Who is calling; set on every request that passed the gate. */
    caller: Caller | undefined
    /** Which operation of the contract this is; set as soon as its route is known. */
    operationId: string | undefined
  }
}

/** Key, rate window, credit, in this order; a known caller's numbers go on the answer, whatever it turns out to be. */
export function makeAdmitHook(operation: Operation, deps: { admission: Admission }) {
  const isScan = operation.does === 'file' || operation.does === 'url'
  return async (request: FastifyRequest, reply: FastifyReply) => {
    request.operationId = operation.id
    const { caller, refused } = await deps.admission.admitRequest(listHeader(request.raw, 'x-api-key'), isScan)
    if (caller !== undefined) {
      request.caller = caller
      reply.header(headers.creditLimit, caller.creditLimit)
      reply.header(headers.creditRemaining, caller.creditRemaining)
      if (refused?.refusal.kind !== 'rate-limited') {
        reply.header(headers.rateLimit, toPeriodText(caller.rate.periodSeconds))
        reply.header(headers.rateRemaining, caller.requestsRemaining)
        reply.header(headers.rateReset, caller.resetsAt.toISOString())
      }
    }
    if (refused !== undefined) throw refused
  }
}

export function getCaller(request: FastifyRequest): Caller {
  if (request.caller === undefined) throw new Error('A handler ran without the gate before it')
  return request.caller
}

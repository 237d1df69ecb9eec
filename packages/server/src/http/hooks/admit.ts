import { headers, type Operation } from '@assay/contract'
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import { toPeriodText } from '../../domain/accounts/account.ts'
import type { Admission, Admitted } from '../../domain/accounts/admission.ts'
import type { Caller } from '../../domain/ports/admission-gate.ts'
import { Problem } from '../../domain/problem.ts'
import { findTestRefusal } from '../../domain/test-mode/test-refusals.ts'
import { listHeader } from '../headers.ts'
import { hasIdempotencyKey } from '../idempotency.ts'

declare module 'fastify' {
  interface FastifyRequest {
    /** Who is calling; set on every request that passed the gate. */
    caller: Caller | undefined
    /** False while a trusted caller's request has not been at the gate yet. */
    isCounted: boolean
    /** Which operation of the contract this is; set as soon as its route is known. */
    operationId: string | undefined
  }
}

type Deps = { admission: Admission }

/** Larger ones pay for being asked first: the work they could cause in vain is more than the question. */
const maxFastPathBytes = 64 * 1024
/** Ordinary pictures are larger than that; looking at one in vain takes about 20 ms of a core. */
const maxFastPathPictureBytes = 1024 * 1024

/** Key, rate window, credit, in this order; a known caller's numbers go on the answer, whatever it turns out to be. */
export function makeAdmitHook(operation: Operation, { admission }: Deps) {
  const isUpload = operation.does === 'file'
  const isScan = isUpload || operation.does === 'url'
  const isSubmit = isUpload && operation.mode === 'async'
  const isPicture = isUpload && operation.mode === 'sync' && operation.kind === 'nsfw_image'
  const maxBytes = isPicture ? maxFastPathPictureBytes : maxFastPathBytes
  return async (request: FastifyRequest, reply: FastifyReply) => {
    request.operationId = operation.id
    const keys = listHeader(request.raw, 'x-api-key')
    // A repeat of a scan is to be known before the work, so it is asked for first.
    const canTakeFastPath = isUpload && isSmall(request, maxBytes) && (isSubmit || !hasIdempotencyKey(request))
    const trusted = canTakeFastPath ? admission.findRecentCaller(keys) : undefined
    if (trusted === undefined)
      return applyAdmission(request, reply, withTest(request, await admission.admitRequest(keys, isScan)))
    request.caller = trusted
    request.isCounted = false
  }
}

/** A test may ask to be refused; what really refuses it comes first. */
function withTest({ raw }: FastifyRequest, { caller, refused }: Admitted): Admitted {
  const asked = caller?.isTest === true ? findTestRefusal(listHeader(raw, headers.test.toLowerCase())) : undefined
  return { caller, refused: refused ?? asked }
}

/** A trusted caller's request may fail before it came to the gate. It is counted then, and may be refused there. */
export function countFailures(app: FastifyInstance, { admission }: Deps) {
  app.setErrorHandler(async (error, request, reply) => {
    // One whose charge was not answered has been at the gate; that nobody knows its outcome is all there is to say.
    const wasAsked = error instanceof Problem && error.refusal.kind === 'outcome-unknown'
    if (!request.isCounted && !wasAsked) {
      applyAdmission(request, reply, await admission.admitRequest(listHeader(request.raw, 'x-api-key'), true))
    }
    throw error
  })
}

/** Puts what the gate said on the answer, and throws its refusal. */
export function applyAdmission(request: FastifyRequest, reply: FastifyReply, { caller, refused }: Admitted) {
  request.isCounted = true
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

export function getCaller(request: FastifyRequest): Caller {
  if (request.caller === undefined) throw new Error('A handler ran without the gate before it')
  return request.caller
}

function isSmall({ raw }: FastifyRequest, maxBytes: number): boolean {
  const bytes = Number(raw.headers['content-length'])
  return bytes <= maxBytes && raw.headers.expect === undefined
}

import { headers } from '@assay/contract'
import type { FastifyRequest } from 'fastify'
import type { Idempotency } from '../domain/ports/admission-gate.ts'
import type { FieldErrors } from '../domain/problem.ts'
import { checkIdempotencyKey, toFingerprint } from '../domain/scans/check-submission.ts'
import { listHeader } from './headers.ts'

const { idempotencyKey: header } = headers

const listKeys = (request: FastifyRequest) => listHeader(request.raw, header.toLowerCase())

export const hasIdempotencyKey = (request: FastifyRequest): boolean => listKeys(request).length > 0

/** What is wrong with the header, under its name. */
export function checkIdempotency(request: FastifyRequest): FieldErrors {
  const keys = listKeys(request)
  if (keys.length === 0) return {}
  const errors = [
    ...(keys.length > 1 ? [`${header} must not be given more than once.`] : []),
    ...checkIdempotencyKey(keys[0] ?? ''),
  ]
  return errors.length === 0 ? {} : { [header]: errors }
}

/**
 * `given` is everything by which a repeat is told from another request. Test keys have keys of their own: what was not
 * scanned must not answer a request that wants it scanned.
 */
export function findIdempotency(request: FastifyRequest, given: (string | null)[]): Idempotency | undefined {
  const [key] = listKeys(request)
  if (key === undefined) return undefined
  const operation = `${request.caller?.isTest === true ? 'test ' : ''}${request.operationId ?? ''}`
  return { operation, key, fingerprint: toFingerprint(given) }
}

import { maxWaitSeconds, type ScanKind } from '@assay/contract'
import type { FastifyRequest } from 'fastify'
import { Problem } from '../../domain/problem.ts'
import { toScanResult } from '../../domain/scans/scan.ts'
import type { Scanning } from '../../domain/scans/scanning.ts'
import { abortWhenClientLeaves } from '../client-abort.ts'
import { getCaller } from '../hooks/admit.ts'
import type { Handler } from './handler.ts'

type Deps = { scanning: Scanning; draining: AbortSignal }

/** A completed result never changes, so whoever has it need not load it again; one that is pending must not be kept. */
export function makeResultHandler(target: { kind: ScanKind }, deps: Deps): Handler {
  return async (request, reply) => {
    const { id } = request.params as { id: string }
    const waitMs = readWait(request) * 1000
    const asked = {
      waitMs,
      ...(waitMs > 0 ? { signal: AbortSignal.any([abortWhenClientLeaves(reply), deps.draining]) } : {}),
    }
    const scan = await deps.scanning.getScan(getCaller(request), target.kind, id, asked)
    if (scan.status === 'pending') {
      reply.header('Cache-Control', 'no-store')
      return toScanResult(scan)
    }
    const tag = `"${scan.id}"`
    reply.header('Cache-Control', 'private').header('ETag', tag)
    return isKnown(request, tag) ? reply.code(304).send() : toScanResult(scan)
  }
}

/** `?wait=10`: an extension of ours, in seconds. */
function readWait(request: FastifyRequest): number {
  const { wait } = request.query as { wait?: unknown }
  if (wait === undefined) return 0
  const seconds = Number(wait)
  if (typeof wait === 'string' && /^\d{1,2}$/.test(wait) && seconds <= maxWaitSeconds) return seconds
  const error = `wait must be a whole number of seconds from 0 to ${maxWaitSeconds}.`
  throw new Problem({ kind: 'validation', errors: { wait: [error] } })
}

const isKnown = ({ headers }: FastifyRequest, tag: string): boolean =>
  (headers['if-none-match'] ?? '').split(',').some((known) => [tag, `W/${tag}`, '*'].includes(known.trim()))

import type { FastifyRequest } from 'fastify'
import { Problem } from '../domain/problem.ts'
import type { DeliveryFeed } from '../domain/webhooks/delivery-feed.ts'
import { getCaller } from './admission.ts'
import { abortWhenClientLeaves } from './request.ts'
import { type Handler, readWait } from './scans.ts'

/** Handles queries for the webhooks of the account since a given time. */
export function makeDeliveriesHandler(deps: { deliveryFeed: DeliveryFeed; draining: AbortSignal }): Handler {
  return async (request, reply) => {
    const since = readSince(request)
    const signal = AbortSignal.any([abortWhenClientLeaves(reply), deps.draining])
    reply.header('Cache-Control', 'no-store')
    return deps.deliveryFeed.list(getCaller(request), since, { waitMs: readWait(request) * 1000, signal })
  }
}

/** JavaScript takes February 30 for March 2; PostgreSQL knows neither that day nor the year 0. */
const isTime = (text: string) =>
  !Number.isNaN(Date.parse(text)) && new Date(text).toISOString().slice(0, 10) === text.slice(0, 10)

const timeForm = /^(?!0000)\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d{1,6})?Z$/

function readSince(request: FastifyRequest): string | undefined {
  const { since } = request.query as { since?: unknown }
  if (since === undefined) return undefined
  if (typeof since === 'string' && timeForm.test(since) && isTime(since)) return since
  const error = 'since must be a time such as 2026-01-31T12:00:00Z, or the until of an earlier answer.'
  throw new Problem({ kind: 'validation', errors: { since: [error] } })
}

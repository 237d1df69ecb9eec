import { drawRandom } from '../domain/draw-random.ts'

/** A W3C trace id of this request: a new span of the caller's trace, or of a trace of our own. */
export function newTraceId(traceparent: string | undefined): string {
  const random = drawRandom(24).toString('hex')
  return `00-${findTrace(traceparent) ?? random.slice(0, 32)}-${random.slice(32)}-01`
}

function findTrace(traceparent: string | undefined): string | undefined {
  if (traceparent === undefined) return undefined
  const trace = /^(?!ff|00.{53}.)[0-9a-f]{2}-([0-9a-f]{32})-(?!0{16})[0-9a-f]{16}-[0-9a-f]{2}(-|$)/.exec(
    traceparent,
  )?.[1]
  return trace === undefined || /^0+$/.test(trace) ? undefined : trace
}

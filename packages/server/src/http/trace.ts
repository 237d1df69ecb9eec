import { randomFillSync } from 'node:crypto'

/** Random bytes are drawn in bulk: one system call for hundreds of requests. */
const pool = Buffer.alloc(24 * 256)
let used = pool.length

/** A W3C trace id of this request: a new span of the caller's trace, or of a trace of our own. */
export function newTraceId(traceparent: string | undefined): string {
  if (used === pool.length) {
    randomFillSync(pool)
    used = 0
  }
  const random = pool.toString('hex', used, used + 24)
  used += 24
  return `00-${findTrace(traceparent) ?? random.slice(0, 32)}-${random.slice(32)}-01`
}

function findTrace(traceparent: string | undefined): string | undefined {
  if (traceparent === undefined) return undefined
  const trace = /^(?!ff|00.{53}.)[0-9a-f]{2}-([0-9a-f]{32})-(?!0{16})[0-9a-f]{16}-[0-9a-f]{2}(-|$)/.exec(
    traceparent,
  )?.[1]
  return trace === undefined || /^0+$/.test(trace) ? undefined : trace
}

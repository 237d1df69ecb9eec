import type { Static } from 'typebox'
import { Type } from '../type.ts'
import { count, nullable, oneOf, time } from './fields.ts'

const spanName = oneOf('hour', 'day')
export type ActivitySpanName = Static<typeof spanName>

/** The last hour by minute, which is the default, or the last day by quarter of an hour. */
export const ActivityQuery = Type.Object({ span: Type.Optional(spanName) })

const verdicts = Type.Object({ clean: count, threat: count, error: count })
const byKind = { malware: verdicts, nsfw_image: verdicts }
const queue = Type.Object({ waiting: count, oldest_seconds: Type.Number() })

const point = {
  /** Beginning of the step. The last step is the current one and still grows. */
  at: time,
  ...byKind,
  /** Estimated from a histogram; null without scans. */
  p50_ms: nullable(Type.Number()),
  p99_ms: nullable(Type.Number()),
  deliveries: Type.Object({ delivered: count, failed: count }),
}
export const VerdictPoint = Type.Object(point)
export type VerdictPoint = Static<typeof VerdictPoint>

/** All nodes together. Percentiles are those of synchronous scans; `deliveries` counts attempts. */
export const ServiceActivity = Type.Object({
  step_seconds: count,
  points: Type.Array(
    Type.Object({
      ...point,
      /** Time that the engines worked or were waited for, added up over scans. */
      engine_seconds: Type.Object({ malware: Type.Number(), nsfw_image: Type.Number() }),
      /** Highest memory of the service processes together, without their engines; null when none was recorded. */
      memory_bytes: nullable(count),
      /** Most background scans that waited, and the age of the oldest; null when none was recorded. */
      queue: nullable(queue),
    }),
  ),
})
export type ServiceActivity = Static<typeof ServiceActivity>

/** Percentiles are those of the time from request to verdict; `deliveries` counts webhooks by their state now. */
export const AccountActivity = Type.Object({
  step_seconds: count,
  /** Background scans without a verdict, of which at most 10,000 are counted. */
  queue,
  points: Type.Array(
    Type.Object({
      ...point,
      /** Background scans without a verdict at the end of the step, and the age of the oldest. */
      queue,
    }),
  ),
})
export type AccountActivity = Static<typeof AccountActivity>

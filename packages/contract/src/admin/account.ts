import type { Static } from 'typebox'
import { Type } from '../type.ts'
import { count, flag, id, name, nullable, oneOf, page, pageQuery, scanKind, text, time, webAddress } from './fields.ts'

const restrictions = {
  /** Actions that the key may do; null for all. */
  allow: nullable(Type.Array(oneOf('read', 'scan', 'submit'), { minItems: 1, maxItems: 3 })),
  kinds: nullable(Type.Array(scanKind, { minItems: 1, maxItems: 2 })),
  /** Networks that the key may be used from, such as 10.0.0.0/8; null for all. */
  networks: nullable(Type.Array(Type.String({ maxLength: 50 }), { minItems: 1, maxItems: 100 })),
}
export const KeyRestrictions = Type.Object(restrictions)
export type KeyRestrictions = Static<typeof KeyRestrictions>

export const KeyRow = Type.Object({
  id,
  name: text,
  prefix: text,
  is_test: flag,
  ...restrictions,
  created_at: time,
  expires_at: nullable(time),
  last_used_at: nullable(time),
  revoked_at: nullable(time),
  /** Email address of the member who created the key; null for a key of an operator or of the first start. */
  created_by: nullable(text),
  /** True if that member does not belong to the account any more. */
  creator_left: flag,
})
export type KeyRow = Static<typeof KeyRow>
export const Keys = Type.Array(KeyRow)
export const CreateKey = Type.Object({
  name,
  expires_at: Type.Optional(nullable(time)),
  is_test: Type.Optional(flag),
  allow: Type.Optional(restrictions.allow),
  kinds: Type.Optional(restrictions.kinds),
  networks: Type.Optional(restrictions.networks),
})
/** `api_key` appears only in this response: the service stores a hash of it. */
export const NewKey = Type.Object({ key: KeyRow, api_key: text })
/** `overlap_hours`: how long the old key keeps working. */
export const RotateKey = Type.Object({ overlap_hours: Type.Integer({ minimum: 0, maximum: 720 }) })
/** `name` must equal the name of the key, as a confirmation. */
export const RevokeKey = Type.Object({ name: text })

export const Webhooks = Type.Object({
  secret_rotated_at: nullable(time),
  previous_until: nullable(time),
  endpoints: Type.Array(
    Type.Object({
      url: text,
      failing_since: nullable(time),
      last_success_at: nullable(time),
      paused_at: nullable(time),
    }),
  ),
})
export type Webhooks = Static<typeof Webhooks>
export const WebhookSecret = Type.Object({ secret: text })
export const TestWebhook = Type.Object({ url: webAddress })
export const TestedWebhook = Type.Object({ status: nullable(count), duration_ms: count, answer: text, delivered: flag })

const deliveryState = oneOf('pending', 'delivered', 'dead', 'stopped')
export const DeliveryRow = Type.Object({
  id,
  scan_id: id,
  url: text,
  state: deliveryState,
  attempts: count,
  last_status: nullable(count),
  created_at: time,
  next_at: nullable(time),
})
export type DeliveryRow = Static<typeof DeliveryRow>
export const DeliveryPage = page(DeliveryRow)
export const DeliveryFilter = Type.Object({
  ...pageQuery,
  state: Type.Optional(deliveryState),
  scan: Type.Optional(id),
})
export const DeliveryDetail = Type.Object({
  delivery: DeliveryRow,
  /** Body of the request as it was sent. */
  body: text,
  attempts: Type.Array(Type.Object({ at: time, status: nullable(count), duration_ms: count, answer: text })),
})
export type DeliveryDetail = Static<typeof DeliveryDetail>
export const ReplaySince = Type.Object({ since: time })
export const Replayed = Type.Object({ replayed: count })

/** Active keys that a removed member created: they keep working until they are revoked. */
export const RemovedMember = Type.Object({ keys: Keys })

/** An operator invited an owner, or a member used a link for a new password that an operator created. */
export const Notice = Type.Object({
  id: text,
  at: time,
  kind: oneOf('owner-invited', 'password-reset'),
  actor: text,
  target: nullable(text),
})
export type Notice = Static<typeof Notice>
export const Notices = Type.Array(Notice)
/** `until`: the time of the newest notice that you have read. */
export const ConfirmNotices = Type.Object({ until: time })

export const AccountView = Type.Object({
  id,
  name: text,
  plan: text,
  credits_per_period: count,
  rate: text,
  /** Rate of all keys together, and the number of active keys that the plan allows; null without a limit. */
  account_rate: nullable(text),
  max_keys: nullable(count),
  flags_sexy: flag,
  download_hosts: nullable(Type.Array(text)),
  created_at: time,
  expires_at: nullable(time),
  suspended_at: nullable(time),
  suspended_reason: nullable(text),
  credit_limit: count,
  credit_remaining: count,
  period_start: time,
  period_end: time,
})
export type AccountView = Static<typeof AccountView>

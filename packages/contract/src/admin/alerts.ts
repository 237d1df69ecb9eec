import type { Static } from 'typebox'
import { Type } from '../type.ts'
import { count, flag, id, nullable, oneOf, text, time } from './fields.ts'

/** Topics that operators can choose, about the whole installation. */
export const operatorTopics = ['signatures', 'engine', 'disk', 'webhooks', 'threats'] as const
/** Topics that owners can choose, about their account. */
export const accountTopics = ['webhooks', 'credits', 'threats'] as const
const topic = oneOf('signatures', 'engine', 'disk', 'webhooks', 'credits', 'threats')
export type AlertTopic = Static<typeof topic>

const channelKind = oneOf('email', 'webhook', 'slack', 'teams')
export type ChannelKind = Static<typeof channelKind>

const threatsPerHour = Type.Integer({ minimum: 1, maximum: 1_000_000 })

export const AlertChannel = Type.Object({
  id,
  kind: channelKind,
  /** The email address, or the host of the URL: the rest of a URL is a credential. */
  target: text,
  topics: Type.Array(topic),
  /** Threats within an hour from which the topic `threats` is told. */
  threats_per_hour: count,
  created_at: time,
  /** When the last message arrived; null if none did. */
  sent_at: nullable(time),
  /** Why the last message did not arrive; null if it did. */
  failure: nullable(text),
})
export type AlertChannel = Static<typeof AlertChannel>

export const Alerts = Type.Object({
  /** False if the service has no mail server. */
  has_email: flag,
  channels: Type.Array(AlertChannel),
  /** Conditions that were told and hold now. */
  open: Type.Array(Type.Object({ topic, text, since: time })),
})
export type Alerts = Static<typeof Alerts>

const choice = {
  topics: Type.Array(topic, { minItems: 1, maxItems: 10 }),
  threats_per_hour: Type.Optional(threatsPerHour),
}
export const AddAlertChannel = Type.Object({
  kind: channelKind,
  /** An email address, which must be that of a member if the channel is of an account, or a URL. */
  target: Type.String({ minLength: 1, maxLength: 2048 }),
  ...choice,
})
export const UpdateAlertChannel = Type.Object(choice)
/** `secret` signs the webhooks of operators and appears only in this response; null for all other channels. */
export const AddedAlertChannel = Type.Object({ channel: AlertChannel, secret: nullable(text) })
export const TestedAlertChannel = Type.Object({ delivered: flag, detail: text })

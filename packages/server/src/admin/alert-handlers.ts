import { type AlertTopic, accountTopics, type AlertChannel as ChannelView, operatorTopics } from '@assay/contract/admin'
import { v7 as newId } from 'uuid'
import { newWebhookSecret } from '../domain/accounts/keys.ts'
import type { SendAlert } from '../domain/alerts.ts'
import type { Clock } from '../domain/clock.ts'
import { type Throttle, toAlertTestSubject } from '../domain/console/throttle.ts'
import type { AlertStore, StoredChannel } from '../domain/ports/alert-store.ts'
import { Problem } from '../domain/problem.ts'
import { type AddressPolicy, checkWebAddress } from '../domain/scans/web-address.ts'
import { type Audit, type Call, getAccountId, getId, type Handlers, requireFound } from './call.ts'

export type AlertHandlerDeps = {
  alerts: AlertStore
  send: SendAlert
  hasEmail: boolean
  policy: AddressPolicy
  throttle: Throttle
  clock: Clock
}

const maxChannels = 20
const defaultThreatsPerHour = 10

type AddCall = Call<'addAlertChannel' | 'addAccountAlertChannel'>

/** Handlers for the alerts of operators, and of the owners of accounts. */
export function makeAlertHandlers(deps: AlertHandlerDeps) {
  const { alerts } = deps
  return {
    getAlerts: () => show(deps, null),
    addAlertChannel: (call) => add(deps, null, call),
    updateAlertChannel: (call) => update(deps, null, call),
    removeAlertChannel: (call) => remove(alerts, null, call),
    testAlertChannel: (call) => test(deps, null, call),
    getAccountAlerts: (call) => show(deps, getAccountId(call)),
    addAccountAlertChannel: (call) => add(deps, getAccountId(call), call),
    updateAccountAlertChannel: (call) => update(deps, getAccountId(call), call),
    removeAccountAlertChannel: (call) => remove(alerts, getAccountId(call), call),
    testAccountAlertChannel: (call) => test(deps, getAccountId(call), call),
  } satisfies Partial<Handlers>
}

async function show({ alerts, hasEmail }: AlertHandlerDeps, accountId: string | null) {
  const [channels, open] = await Promise.all([alerts.listChannels(accountId), alerts.listOpen(accountId)])
  return {
    has_email: hasEmail,
    channels: channels.map(toView),
    open: open.map(({ topic, text, since }) => ({ topic, text, since: since.toISOString() })),
  }
}

async function add(deps: AlertHandlerDeps, accountId: string | null, { who, audit, body }: AddCall) {
  const { alerts, clock } = deps
  const { kind } = body
  const target = body.target.trim()
  const errors = await checkTarget(deps, accountId, kind, target)
  if (errors.length > 0) throw new Problem({ kind: 'validation', errors: { target: errors } })
  const topics = toTopics(accountId, body.topics)
  if ((await alerts.listChannels(accountId)).length >= maxChannels) {
    throw new Problem({ kind: 'conflict', detail: `There are ${maxChannels} channels already. Remove one first.` })
  }
  const channel = {
    id: newId(),
    accountId,
    kind,
    target,
    secret: kind === 'webhook' && accountId === null ? newWebhookSecret() : null,
    topics,
    threatsPerHour: body.threats_per_hour ?? defaultThreatsPerHour,
  }
  await alerts.addChannel(channel, who.actor)
  await audit('alert.add', channel.id, { detail: `${kind} ${toShownTarget(channel)}` })
  const view = toView({ ...channel, createdAt: clock.now(), sentAt: null, failure: null })
  return { channel: view, secret: channel.secret }
}

async function checkTarget(
  { alerts, hasEmail, policy }: AlertHandlerDeps,
  accountId: string | null,
  kind: ChannelView['kind'],
  target: string,
): Promise<string[]> {
  if (kind !== 'email') return checkWebAddress(target, policy)
  if (!hasEmail) return ['The service has no mail server. Ask the operator to set ASSAY_SMTP_URL.']
  if (!/^[^\s@<>,;"]{1,64}@[^\s@<>,;"]{1,189}$/.test(target)) return ['Enter an email address.']
  // Otherwise an owner could have this service write to strangers.
  if (accountId !== null && !(await alerts.isMemberEmail(accountId, target))) {
    return ['Enter the email address of a member of this account.']
  }
  return []
}

/** Returns each topic once. Throws for a topic that this owner cannot choose. */
function toTopics(accountId: string | null, topics: AlertTopic[]): AlertTopic[] {
  const allowed: readonly AlertTopic[] = accountId === null ? operatorTopics : accountTopics
  const others = topics.filter((topic) => !allowed.includes(topic))
  if (others.length === 0) return [...new Set(topics)]
  throw new Problem({ kind: 'validation', errors: { topics: [`Choose from ${allowed.join(', ')}.`] } })
}

async function update(
  { alerts }: AlertHandlerDeps,
  accountId: string | null,
  call: Call<'updateAlertChannel' | 'updateAccountAlertChannel'>,
) {
  const id = getId(call, 'channel')
  const topics = toTopics(accountId, call.body.topics)
  const { threats_per_hour: threatsPerHour } = call.body
  requireFound(await alerts.updateChannel(accountId, id, { topics, threatsPerHour }), 'channel')
  await call.audit('alert.update', id, { detail: topics.join(', ') })
}

type ById = { params: Record<string, string>; audit: Audit }

async function remove(alerts: AlertStore, accountId: string | null, call: ById) {
  const id = getId(call, 'channel')
  requireFound(await alerts.removeChannel(accountId, id), 'channel')
  await call.audit('alert.remove', id)
}

/** Sends a message at once, and shows why it did not arrive. The answer of a receiver is not shown, only its status. */
async function test({ alerts, send, throttle, clock }: AlertHandlerDeps, accountId: string | null, call: ById) {
  const id = getId(call, 'channel')
  const channels = await alerts.listChannels(accountId)
  const channel = requireFound(
    channels.find((one) => one.id === id),
    'channel',
  )
  const { target } = channel
  if (target === null) throw new Problem({ kind: 'conflict', detail: notOpened })
  if (accountId !== null) {
    if (channel.kind === 'email' && !(await alerts.isMemberEmail(accountId, target))) {
      throw new Problem({ kind: 'conflict', detail: 'This is not the email address of a member of this account.' })
    }
    await throttle.begin([toAlertTestSubject(accountId)])
  }
  const text = 'This is a test. Alerts that you have chosen arrive here.'
  const failure = await send(
    { ...channel, target },
    { id: newId(), state: 'test', topic: null, text, since: clock.now() },
  )
  await call.audit('alert.test', id)
  return { delivered: failure === null, detail: failure ?? 'The test message was accepted.' }
}

const notOpened = 'The address of this channel cannot be opened with the master key. Remove it and add it again.'

const toView = (channel: StoredChannel): ChannelView => ({
  id: channel.id,
  kind: channel.kind,
  target: toShownTarget(channel),
  topics: channel.topics,
  threats_per_hour: channel.threatsPerHour,
  created_at: channel.createdAt.toISOString(),
  sent_at: channel.sentAt?.toISOString() ?? null,
  failure: channel.target === null ? notOpened : channel.failure,
})

function toShownTarget({ kind, target }: Pick<StoredChannel, 'kind' | 'target'>): string {
  if (target === null) return 'unreadable address'
  return kind === 'email' ? target : new URL(target).host
}

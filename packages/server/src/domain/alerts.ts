import type { AlertTopic } from '@assay/contract/admin'
import type { Clock } from './clock.ts'
import type { AlertChannel, AlertCondition, AlertFacts, AlertMessage, MailSender } from './ports/alert-store.ts'
import type { WebhookSender } from './ports/delivery-store.ts'
import { isSuccess, toSignatureHeaders } from './webhooks/deliver.ts'

/** Engines restart within seconds, and nodes are restarted; neither is worth an alert. */
const nodeHoldMs = 60_000

/** The checks of nodes behind a topic. */
const checksByTopic: Partial<Record<AlertTopic, string[]>> = {
  signatures: ['signatures'],
  engine: ['malware engine', 'NSFW image engine', 'workers'],
  disk: ['disk'],
}

const creditWarningShare = 0.8

/** Finds every condition that a channel has chosen to hear of. */
export const findConditions = (channels: AlertChannel[], facts: AlertFacts): AlertCondition[] =>
  channels.flatMap((channel) =>
    channel.topics.flatMap((topic) =>
      findByTopic(channel, topic, facts).map((found) => ({ channelId: channel.id, topic, ...found })),
    ),
  )

type Found = Pick<AlertCondition, 'subject' | 'text' | 'nodeName' | 'holdMs'>

function findByTopic(channel: AlertChannel, topic: AlertTopic, facts: AlertFacts): Found[] {
  switch (topic) {
    case 'credits':
      return findCredits(channel, facts)
    case 'threats':
      return findThreats(channel, facts)
    case 'webhooks':
      return findDeadReceivers(channel, facts)
    default:
      return findNodeFaults(channel, checksByTopic[topic] ?? [], facts)
  }
}

/** The last state of a node that is silent is not the news of a recovery, so its open alerts stay. */
function findNodeFaults(channel: AlertChannel, checks: string[], { nodes, isOpen }: AlertFacts): Found[] {
  const alive = new Set(nodes.filter(({ isAlive }) => isAlive).map(({ name }) => name))
  const found = new Map<string, Found>()
  for (const { name, isAlive, faults } of nodes) {
    for (const check of checks) {
      const sentence = faults[check]
      const subject = `${check} of ${name}`
      const isNews = isAlive || (!alive.has(name) && isOpen(channel.id, subject))
      if (sentence === undefined || !isNews || found.has(subject)) continue
      found.set(subject, { subject, text: `Node ${name}: ${sentence}`, nodeName: name, holdMs: nodeHoldMs })
    }
  }
  return [...found.values()]
}

function findCredits(channel: AlertChannel, { credits, isOpen }: AlertFacts): Found[] {
  return credits
    .filter(({ accountId, limit }) => accountId === channel.accountId && limit > 0)
    .flatMap(({ accountName, limit, remaining, periodEnd }) => {
      const used = limit - remaining
      const end = periodEnd.toISOString().slice(0, 10)
      // An account that is at its end at once gets one alert, not two.
      const isNear = used / limit >= creditWarningShare && (remaining > 0 || isOpen(channel.id, 'credits 80'))
      const near = {
        subject: 'credits 80',
        text: `${used} of ${limit} credits of ${accountName} are used. The period ends on ${end}.`,
        nodeName: null,
        holdMs: 0,
      }
      const gone = {
        subject: 'credits 100',
        text: `All ${limit} credits of ${accountName} are used: scans are refused. The period ends on ${end}.`,
        nodeName: null,
        holdMs: 0,
      }
      return [...(isNear ? [near] : []), ...(remaining === 0 ? [gone] : [])]
    })
}

/** The alert ends at half of its limit, so that a number close to the limit does not begin and end it again. */
function findThreats(channel: AlertChannel, { threats, isOpen }: AlertFacts): Found[] {
  const { count } = threats.find(({ accountId }) => accountId === channel.accountId) ?? { count: 0 }
  const limit = channel.threatsPerHour
  const wasFound = isOpen(channel.id, 'threats')
  // Without a count an open alert stays open, with the text that it has.
  if (count === null ? !wasFound : wasFound ? count <= limit / 2 : count < limit) return []
  const found = count === 1 ? '1 threat was' : `${count ?? limit} threats were`
  const text = `${found} found within an hour; the limit is ${limit}.`
  return [{ subject: 'threats', text, nodeName: null, holdMs: 0 }]
}

function findDeadReceivers(channel: AlertChannel, { deadReceivers }: AlertFacts): Found[] {
  const found = new Map<string, Found>()
  for (const { accountId, accountName, host, since } of deadReceivers) {
    if (channel.accountId !== null && accountId !== channel.accountId) continue
    const isOwn = channel.accountId !== null
    const text = `Webhooks${isOwn ? '' : ` of ${accountName}`} to ${host} have failed for good since ${since.toISOString()}.`
    const subject = `webhooks${isOwn ? '' : ` of ${accountId}`} to ${host}`
    found.set(subject, { subject, text, nodeName: null, holdMs: 0 })
  }
  return [...found.values()]
}

/** The time limit of an attempt. The leases of messages must be longer. */
const attemptMs = 15_000

type Deps = {
  /** Undefined without a mail server. */
  mail: MailSender | undefined
  sender: WebhookSender
  listWebhookSecrets(accountId: string): Promise<string[]>
  clock: Clock
  region: string
}

const topicTitles: Record<AlertTopic, string> = {
  signatures: 'Signatures',
  engine: 'Engine',
  disk: 'Disk space',
  webhooks: 'Webhooks',
  credits: 'Credits',
  threats: 'Threats',
}

/** Sends a message to a channel. Returns the reason why it did not arrive, or null. */
export function makeSendAlert(deps: Deps) {
  return async (channel: AlertChannel, message: AlertMessage, attempts = 0): Promise<string | null> => {
    switch (channel.kind) {
      case 'email':
        return sendMail(channel, message)
      case 'webhook': {
        const secrets = await listSecrets(channel)
        if (secrets.length === 0) return 'The webhook secret cannot be opened.'
        const sign = (body: Buffer) =>
          toSignatureHeaders({ id: message.id, body, secrets, attempts, at: deps.clock.now() })
        return post(channel, toWebhookBody(channel, message), sign)
      }
      case 'slack':
        return post(channel, { text: escapeSlack(toText(message)) })
      case 'teams':
        return post(channel, toTeamsBody(message))
    }
  }

  async function sendMail({ target }: AlertChannel, message: AlertMessage) {
    if (deps.mail === undefined) return 'There is no mail server: set ASSAY_SMTP_URL.'
    const text = `${message.text}\n\nRegion: ${deps.region}\nSince: ${message.since.toISOString()}\n`
    return (await deps.mail.send({ to: target, subject: `[Assay] ${toTitle(message)}`, text })) ?? null
  }

  async function post(
    { target: url }: AlertChannel,
    content: object,
    sign: (body: Buffer) => Record<string, string> = () => ({}),
  ): Promise<string | null> {
    const body = Buffer.from(JSON.stringify(content))
    const answer = await deps.sender.send({ url, headers: sign(body), body, totalMs: attemptMs })
    if (answer.status === null) return answer.reason
    return isSuccess(answer.status) ? null : `The receiver answered with status ${answer.status}.`
  }

  async function listSecrets({ accountId, secret }: AlertChannel): Promise<string[]> {
    if (accountId !== null) return deps.listWebhookSecrets(accountId).catch(() => [])
    return secret === null ? [] : [secret]
  }

  function toWebhookBody({ accountId }: AlertChannel, { id, state, topic, text, since }: AlertMessage) {
    const { region } = deps
    return { type: `alert.${state}`, id, topic, text, since: since.toISOString(), account_id: accountId, region }
  }

  function toTeamsBody(message: AlertMessage) {
    const content = {
      type: 'AdaptiveCard',
      $schema: 'http://adaptivecards.io/schemas/adaptive-card.json',
      version: '1.2',
      body: [
        { type: 'TextBlock', weight: 'bolder', wrap: true, text: toTitle(message) },
        { type: 'TextBlock', wrap: true, text: message.text },
      ],
    }
    return {
      type: 'message',
      attachments: [{ contentType: 'application/vnd.microsoft.card.adaptive', contentUrl: null, content }],
    }
  }
}

export type SendAlert = ReturnType<typeof makeSendAlert>

const stateTitles = { firing: 'Alert', resolved: 'Resolved', test: 'Test' }

const toTitle = ({ state, topic }: AlertMessage) =>
  topic === null ? stateTitles[state] : `${stateTitles[state]}: ${topicTitles[topic]}`

const toText = (message: AlertMessage) => `[Assay] ${toTitle(message)}\n${message.text}`

/** Slack takes these characters for links, channels and mentions. */
const escapeSlack = (text: string) => text.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('>', '&gt;')

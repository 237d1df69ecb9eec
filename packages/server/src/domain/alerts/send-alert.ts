import type { AlertTopic } from '@assay/contract/admin'
import type { AlertChannel, AlertMessage } from '../ports/alert-store.ts'
import type { Clock } from '../ports/clock.ts'
import type { MailSender } from '../ports/mail-sender.ts'
import type { WebhookSender } from '../ports/webhook-sender.ts'
import { toSignatureHeaders } from '../webhooks/signature.ts'

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

const titles: Record<AlertTopic, string> = {
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
    return answer.status >= 200 && answer.status < 300 ? null : `The receiver answered with status ${answer.status}.`
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

const states = { firing: 'Alert', resolved: 'Resolved', test: 'Test' }

const toTitle = ({ state, topic }: AlertMessage) =>
  topic === null ? states[state] : `${states[state]}: ${titles[topic]}`

const toText = (message: AlertMessage) => `[Assay] ${toTitle(message)}\n${message.text}`

/** Slack takes these characters for links, channels and mentions. */
const escapeSlack = (text: string) => text.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('>', '&gt;')

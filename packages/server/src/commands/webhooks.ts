import { type Command, InvalidArgumentError } from 'commander'
import type { Stores } from '../compose/stores.ts'
import { loadConfig } from '../config/load-config.ts'
import type { Delivery, DeliveryState, Endpoint, LoggedAttempt } from '../domain/ports/delivery-store.ts'
import { OperatorMistake } from '../domain/problem.ts'
import { checkWebAddress } from '../domain/scans/web-address.ts'
import { isSuccess, type SampleResult, sendSample } from '../domain/webhooks/deliver.ts'
import { hideCredentials } from '../runtime/hide-credentials.ts'
import { readDate, readId, requireFound } from './options.ts'
import { addCommand, changeStores, newCommand, print, toCard, toTable, withStores } from './terminal.ts'

export function makeWebhooksCommand(): Command {
  const webhooks = newCommand('webhooks', 'list and replay deliveries, test receivers, show and rotate secrets')
  addShowSecret(webhooks)
  addRotateSecret(webhooks)
  addDeliveries(webhooks)
  addShow(webhooks)
  addReplay(webhooks)
  addEndpoints(webhooks)
  addResume(webhooks)
  addTest(webhooks)
  return webhooks
}

function addShowSecret(webhooks: Command) {
  addCommand(webhooks, 'show-secret', 'show the webhook secret of an account')
    .requiredOption('--account <id>', 'ID of the account', readId)
    .action(async ({ account }: { account: string }, command: Command) => {
      const [secret] = await changeStores(async ({ accounts }, audit) => {
        const secrets = await accounts.listWebhookSecrets(account)
        if (secrets.length > 0) await audit('webhook-secret.reveal', account, { accountId: account })
        return secrets
      })
      const current = requireFound(secret, `account ${account}`)
      print(command, { id: account, webhook_secret: current }, toCard({ 'webhook secret': current }))
    })
}

function addRotateSecret(webhooks: Command) {
  addCommand(webhooks, 'rotate-secret', 'create a new webhook secret; the old one also signs for 24 hours')
    .requiredOption('--account <id>', 'ID of the account', readId)
    .action(async ({ account }: { account: string }, command: Command) => {
      const rotated = await changeStores(async ({ registration }, audit) => {
        const created = await registration.rotateWebhookSecret(account)
        if (created !== undefined) await audit('webhook-secret.rotate', account, { accountId: account })
        return created
      })
      const { webhookSecret, previousUntil } = requireFound(rotated, `account ${account}`)
      const json = { id: account, webhook_secret: webhookSecret, previous_until: previousUntil }
      const card = { 'webhook secret': webhookSecret, 'old secret until': previousUntil.toISOString() }
      print(command, json, `${toCard(card)}\n\nThe secret is shown only once. Store it now.`)
    })
}

function addDeliveries(webhooks: Command) {
  type Options = { account?: string; state?: DeliveryState; limit: number }
  addCommand(webhooks, 'deliveries', 'list deliveries, newest first')
    .option('--account <id>', 'only of this account', readId)
    .option('--state <state>', `only deliveries in this state: ${states.join(', ')}`, readState)
    .option('--limit <n>', 'number of rows', readLimit, 50)
    .action(async ({ account, state, limit }: Options, command: Command) => {
      const filter = { limit, ...(account && { accountId: account }), ...(state && { state }) }
      const found = await withStores(({ deliveries }) => deliveries.listDeliveries(filter))
      const columns = ['id', 'scan', 'state', 'attempts', 'last status', 'next', 'url']
      const rows = found.map((d) => [d.id, d.scanId, d.state, d.attempts, d.lastStatus, toTime(d.nextAt), d.url])
      print(command, found.map(toDeliveryJson), toTable(columns, rows))
    })
}

function addShow(webhooks: Command) {
  addCommand(webhooks, 'show', 'show a delivery with its body and attempts')
    .argument('<id>', 'ID of the delivery', readId)
    .action(async (id: string, _options: unknown, command: Command) => {
      const stored = await withStores(({ deliveries }) => deliveries.findDelivery(id))
      const delivery = requireFound(stored, `delivery ${id}`)
      const card = {
        id,
        scan: delivery.scanId,
        account: delivery.accountId,
        url: delivery.url,
        state: delivery.state,
        created: toTime(delivery.createdAt),
        next: toTime(delivery.nextAt),
        body: toPlain(delivery.body),
      }
      const rows = delivery.log.map((a) => [toTime(a.at), a.status, a.durationMs, toPlain(a.answer)])
      const text = `${toCard(card)}\n\n${toTable(['attempted', 'status', 'ms', 'answer'], rows)}`
      print(command, { ...toDeliveryJson(delivery), body: delivery.body, log: delivery.log.map(toAttemptJson) }, text)
    })
}

function addReplay(webhooks: Command) {
  addCommand(webhooks, 'replay', 'deliver again now: one delivery, or all that failed since a date')
    .argument('[id]', 'ID of the delivery', readId)
    .option('--failed-since <date>', 'replay all deliveries that failed since this date', readDate)
    .option('--account <id>', 'with --failed-since: only deliveries of this account', readId)
    .action(async (id: string | undefined, options: { failedSince?: Date; account?: string }, command: Command) => {
      const { failedSince, account } = options
      if ((id === undefined) === (failedSince === undefined) || (id !== undefined && account !== undefined)) {
        throw new OperatorMistake('Give the ID of a delivery, or --failed-since with or without --account.')
      }
      const selection =
        failedSince === undefined ? { ids: [id ?? ''] } : { failedSince, ...(account && { accountId: account }) }
      const replayed = await changeStores(async ({ deliveries }, audit) => {
        const count = await deliveries.replay(selection)
        await audit('delivery.replay', id, { detail: JSON.stringify({ ...selection, count }) })
        return count
      })
      if (id !== undefined && replayed === 0) throw new OperatorMistake(`There is no delivery ${id}.`)
      print(command, { replayed }, `${replayed} ${replayed === 1 ? 'delivery is' : 'deliveries are'} due again.`)
    })
}

function addEndpoints(webhooks: Command) {
  addCommand(webhooks, 'endpoints', 'list receivers with their failures, pauses and waiting deliveries')
    .option('--account <id>', 'only of this account', readId)
    .action(async ({ account }: { account?: string }, command: Command) => {
      const filter = { ...(account && { accountId: account }) }
      const endpoints = await withStores(({ deliveries }) => deliveries.listEndpoints(filter))
      const columns = ['account', 'failing since', 'paused', 'last success', 'waiting', 'url']
      const toRow = (e: Endpoint) => [toTime(e.failingSince), toTime(e.pausedAt), toTime(e.lastSuccessAt), e.waiting]
      const rows = endpoints.map((endpoint) => [endpoint.accountId, ...toRow(endpoint), endpoint.url])
      print(command, endpoints.map(toEndpointJson), toTable(columns, rows))
    })
}

function addResume(webhooks: Command) {
  addCommand(webhooks, 'resume', 'resume deliveries to a paused receiver')
    .requiredOption('--account <id>', 'ID of the account', readId)
    .requiredOption('--url <url>', 'URL of the receiver, as `webhooks endpoints` prints it')
    .action(async ({ account, url }: { account: string; url: string }, command: Command) => {
      const isResumed = await changeStores(async ({ deliveries }, audit) => {
        const isFound = await deliveries.resumeEndpoint(account, url)
        if (isFound) await audit('endpoint.resume', hideCredentials(url), { accountId: account })
        return isFound
      })
      if (!isResumed) throw new OperatorMistake(`Account ${account} has no paused receiver with that URL.`)
      print(command, { account_id: account, url, resumed: true }, 'Deliveries to the receiver are resumed.')
    })
}

function addTest(webhooks: Command) {
  addCommand(webhooks, 'test', 'send a signed sample to a receiver and show its response')
    .argument('<url>', 'URL of the receiver')
    .option('--account <id>', 'account whose secret signs; optional if there is only one account', readId)
    .action(async (url: string, { account }: { account?: string }, command: Command) => {
      const { config } = loadConfig(process.env)
      // Imported here, so that other commands start without loading an HTTP client.
      const { makeOutbound } = await import('../compose/scanning.ts')
      const { policy, sender } = makeOutbound(config)
      const [error] = checkWebAddress(url, policy)
      if (error !== undefined) throw new OperatorMistake(`The URL ${error}`)
      const { secrets, clock } = await changeStores(async (stores, audit) => {
        const found = await getSecrets(stores, account)
        await audit('webhook.test', hideCredentials(url), { accountId: account })
        return { secrets: found, clock: stores.database.clock }
      })
      const sent = await sendSample({ sender, clock }, { url, secrets })
      print(command, toSampleJson(url, sent), toSampleText(url, sent))
      if (!isSuccess(sent.status)) process.exitCode = 1
    })
}

async function getSecrets({ accounts }: Stores, given: string | undefined): Promise<string[]> {
  const id = given ?? (await getOnlyAccount(accounts))
  const secrets = await accounts.listWebhookSecrets(id)
  return requireFound(secrets.length === 0 ? undefined : secrets, `account ${id}`)
}

async function getOnlyAccount(accounts: Stores['accounts']): Promise<string> {
  const all = await accounts.listAccounts()
  const [only] = all
  if (only !== undefined && all.length === 1) return only.id
  throw new OperatorMistake(
    all.length === 0
      ? 'There is no account, so there is no secret to sign with. Create an account: npm run assay -- accounts create --name <name>.'
      : `There are ${all.length} accounts. Choose one with --account <id>; npm run assay -- accounts list prints them.`,
  )
}

const states: DeliveryState[] = ['pending', 'delivered', 'dead', 'stopped']

function readState(text: string): DeliveryState {
  const state = states.find((name) => name === text)
  if (state === undefined) throw new InvalidArgumentError(`Enter one of ${states.join(', ')}.`)
  return state
}

function readLimit(text: string): number {
  const limit = Number(text)
  if (!/^\d{1,5}$/.test(text) || limit < 1 || limit > 10_000) {
    throw new InvalidArgumentError('Enter a whole number from 1 to 10000.')
  }
  return limit
}

const toTime = (date: Date | null) => date?.toISOString() ?? '-'

/** Puts the text of a receiver on one line, without control characters that a terminal would obey. */
const toPlain = (text: string) => text.replace(/[\s\u0000-\u001f\u007f-\u009f]+/gu, ' ').trim()

function toSampleText(url: string, { status, durationMs, answer, headers, body }: SampleResult): string {
  const lines = Object.entries(headers).map(([name, value]) => `${name}: ${value}`)
  const card = { status: status ?? 'none', duration: `${durationMs} ms`, answer: toPlain(answer) }
  return `${toCard(card)}\n\nThe request:\n\nPOST ${url}\n${lines.join('\n')}\n\n${body}`
}

const toSampleJson = (url: string, { status, durationMs, answer, headers, body }: SampleResult) => ({
  url,
  status,
  duration_ms: durationMs,
  answer,
  headers,
  body,
})

const toDeliveryJson = (delivery: Delivery) => ({
  id: delivery.id,
  scan_id: delivery.scanId,
  account_id: delivery.accountId,
  url: delivery.url,
  state: delivery.state,
  attempts: delivery.attempts,
  created_at: delivery.createdAt,
  next_at: delivery.nextAt,
  last_status: delivery.lastStatus,
})

const toAttemptJson = ({ at, status, durationMs, answer }: LoggedAttempt) => ({
  at,
  status,
  duration_ms: durationMs,
  answer,
})

const toEndpointJson = (endpoint: Endpoint) => ({
  account_id: endpoint.accountId,
  url: endpoint.url,
  failing_since: endpoint.failingSince,
  last_success_at: endpoint.lastSuccessAt,
  paused_at: endpoint.pausedAt,
  waiting: endpoint.waiting,
})

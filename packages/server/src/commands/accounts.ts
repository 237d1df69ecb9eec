import { type Command, InvalidArgumentError, Option } from 'commander'
import type { Stores } from '../compose/stores.ts'
import { loadConfig } from '../config/load-config.ts'
import { type Account, type LedgerEntry, type Rate, toRateText } from '../domain/accounts/account.ts'
import type { AccountChange } from '../domain/ports/account-store.ts'
import { OperatorMistake } from '../domain/problem.ts'
import { checkWebAddress, makeAddressPolicy } from '../domain/scans/web-address.ts'
import { hideCredentials } from '../runtime/hide-credentials.ts'
import {
  orNone,
  readCredits,
  readDate,
  readHosts,
  readId,
  readName,
  readPolicy,
  readRate,
  readReason,
  requireFound,
  toNullable,
} from './options.ts'
import {
  addCommand,
  type CommandAudit,
  changeStores,
  newCommand,
  print,
  toCard,
  toTable,
  withStores,
} from './terminal.ts'

type CreateOptions = {
  name: string
  plan: string
  credits?: number
  rate?: Rate
  expires?: Date
  sexy?: Sexy
  downloadHosts?: string[]
  policy?: string
  testKey?: boolean
}
type UpdateOptions = {
  name?: string
  plan?: string
  credits?: number | 'none'
  rate?: Rate | 'none'
  expires?: Date | 'none'
  sexy?: Sexy
  downloadHosts?: string[] | 'none'
  revisionUrl?: string
  policy?: string
}

const hostsHelp = 'hosts that URLs may be downloaded from, such as files.example.com,*.example.org'
const policyHelp = 'findings that are a threat: any, or quorum and a number, such as "quorum 2" (docs/more-engines.md)'
const sexyVerdicts = ['threat', 'clean'] as const
type Sexy = (typeof sexyVerdicts)[number]

export function makeAccountsCommand(): Command {
  const accounts = newCommand('accounts', 'create, show and change accounts')

  addCommand(accounts, 'create', 'create an account, and print its API key and webhook secret once')
    .requiredOption('--name <name>', 'name of the account', readName)
    .option('--plan <plan>', 'plan of the account', 'standard')
    .option('--credits <n>', 'credits per period; overrides the plan', readCredits)
    .option('--rate <n/period>', 'rate limit, such as 50/1m; overrides the plan', readRate)
    .option('--expires <date>', 'end of the subscription', readDate)
    .addOption(newSexyOption())
    .option('--download-hosts <hosts>', hostsHelp, readHosts)
    .option('--policy <policy>', policyHelp, readPolicy)
    .option('--test-key', 'make the first key a test key, which neither scans nor charges (docs/test-mode.md)')
    .action(async (options: CreateOptions, command: Command) => {
      const { name, plan, credits, rate, expires, sexy, downloadHosts, policy, testKey } = options
      const { account, apiKey, webhookSecret } = await changeStores(async ({ registration }, audit) => {
        const registered = await registration.register({
          name,
          plan,
          ...(credits === undefined ? {} : { credits }),
          ...(rate === undefined ? {} : { rate }),
          ...(expires === undefined ? {} : { expiresAt: expires }),
          ...(sexy === undefined ? {} : { flagsSexy: sexy === 'threat' }),
          ...(downloadHosts === undefined ? {} : { downloadHosts }),
          ...(policy === undefined ? {} : { verdictPolicy: policy }),
          isTest: testKey === true,
        })
        const { id } = registered.account
        await audit('account.create', id, { accountId: id, detail: name })
        return registered
      })
      warnOfUnusedPolicy(policy)
      const json = { ...toJson(account), api_key: apiKey, webhook_secret: webhookSecret }
      const shown = { id: account.id, 'API key': apiKey, 'webhook secret': webhookSecret }
      print(command, json, `${toCard(shown)}\n\nThe key and the secret are shown only once. Store them now.`)
    })

  addCommand(accounts, 'list', 'list all accounts').action(async (_options: unknown, command: Command) => {
    const found = await withStores((stores) => stores.accounts.listAccounts())
    const columns = ['id', 'name', 'plan', 'credits', 'rate', 'state']
    const rows = found.map((a) => [a.id, a.name, a.plan, toCredits(a), toRateText(a.rate), toState(a)])
    print(command, found.map(toJson), toTable(columns, rows))
  })

  addCommand(accounts, 'show', 'show one account')
    .argument('<id>', 'ID of the account', readId)
    .action(async (id: string, _options: unknown, command: Command) => {
      printAccount(command, await withStores((stores) => stores.accounts.findAccount(id)), id)
    })

  addCommand(accounts, 'update', 'change an account; a new plan, credits or rate take effect at once')
    .argument('<id>', 'ID of the account', readId)
    .option('--name <name>', 'name of the account', readName)
    .option('--plan <plan>', 'plan of the account')
    .option('--credits <n>', 'credits per period, or none to use those of the plan', orNone(readCredits))
    .option('--rate <n/period>', 'rate limit, or none to use that of the plan', orNone(readRate))
    .option('--expires <date>', 'end of the subscription, or none', orNone(readDate))
    .addOption(newSexyOption())
    .option('--download-hosts <hosts>', `${hostsHelp}, or none`, orNone(readHosts))
    .option('--revision-url <url>', 'address that gets a webhook when a result is revised, or none')
    .option('--policy <policy>', `${policyHelp}, or none for that of the installation`, orNone(readPolicy))
    .action(async (id: string, options: UpdateOptions, command: Command) => {
      const { plan } = options
      const change = toChange(options)
      const changed = await changeStores(async (stores, audit) => {
        if (plan !== undefined) await stores.registration.requirePlan(plan)
        return updateAccount(stores, audit, id, change)
      })
      printAccount(command, changed, id)
      warnOfUnusedPolicy(options.policy)
    })

  for (const [name, suspended, about] of [
    ['suspend', true, 'reject all keys of an account with 401 until it is resumed'],
    ['resume', false, 'accept the keys of a suspended account again'],
  ] as const) {
    const sub = addCommand(accounts, name, about).argument('<id>', 'ID of the account', readId)
    if (suspended) sub.option('--reason <text>', 'reason that members of the account read in the console', readReason)
    sub.action(async (id: string, { reason }: { reason?: string }, command: Command) => {
      const change: AccountChange = { suspended, ...(reason === undefined ? {} : { suspendedReason: reason }) }
      const changed = await changeStores((stores, audit) => updateAccount(stores, audit, id, change))
      printAccount(command, changed, id)
    })
  }
  return accounts
}

/** Warns that engines do not vote by the configuration of this node, so that a policy of an account has no effect. */
function warnOfUnusedPolicy(policy: string | undefined) {
  if (policy === undefined || policy === 'any' || policy === 'none') return
  const { engines, verdictPolicy } = loadConfig(process.env).config
  if (engines.length > 0 || verdictPolicy !== 'any') return
  process.stderr.write(
    'The policy has no effect while assay.toml has no [[engines]] and ASSAY_VERDICT_POLICY is any. ' +
      'To let ClamAV and YARA vote, add a table of the kind builtin: see docs/more-engines.md.\n',
  )
}

function toChange(options: UpdateOptions): AccountChange {
  const { name, plan, credits, rate, expires, sexy, downloadHosts, revisionUrl, policy } = options
  return {
    ...(name === undefined ? {} : { name }),
    ...(plan === undefined ? {} : { plan }),
    ...(credits === undefined ? {} : { credits: toNullable(credits) }),
    ...(rate === undefined ? {} : { rate: toNullable(rate) }),
    ...(expires === undefined ? {} : { expiresAt: toNullable(expires) }),
    ...(sexy === undefined ? {} : { flagsSexy: sexy === 'threat' }),
    ...(downloadHosts === undefined ? {} : { downloadHosts: toNullable(downloadHosts) }),
    ...(revisionUrl === undefined ? {} : { revisionUrl: readRevisionUrl(revisionUrl) }),
    ...(policy === undefined ? {} : { verdictPolicy: toNullable(policy) }),
  }
}

async function updateAccount({ accounts }: Stores, audit: CommandAudit, id: string, change: AccountChange) {
  const account = await accounts.updateAccount(id, change)
  const more = { accountId: id, detail: hideCredentials(JSON.stringify(change)) }
  if (account !== undefined) await audit('account.update', id, more)
  return account
}

function printAccount(command: Command, found: Account | undefined, id: string) {
  const account = requireFound(found, `account ${id}`)
  const { period } = account.balance
  const card = {
    id: account.id,
    name: account.name,
    plan: account.plan,
    credits: toCredits(account),
    rate: toRateText(account.rate),
    'sexy images': toSexy(account),
    'download hosts': account.downloadHosts?.join(', ') ?? 'all public hosts',
    'revision webhook': account.revisionUrl ?? 'none',
    ...(account.verdictPolicy === null ? {} : { 'verdict policy': account.verdictPolicy }),
    period: `${period.start.toISOString()} to ${period.end.toISOString()}`,
    created: account.createdAt.toISOString(),
    expires: account.expiresAt?.toISOString() ?? 'never',
    state: toState(account),
    ...(account.suspendedReason === null ? {} : { reason: account.suspendedReason }),
  }
  print(command, toJson(account), toCard(card))
}

/** Webhooks of this service reach only addresses that its settings allow. */
function readRevisionUrl(url: string): string | null {
  if (url === 'none') return null
  const [error] = checkWebAddress(url, makeAddressPolicy(loadConfig(process.env).config.outboundAllow))
  if (error !== undefined) throw new OperatorMistake(`The URL ${error}`)
  return url
}

const newSexyOption = () =>
  new Option('--sexy <verdict>', 'verdict on images that are sexy but not pornographic').choices(sexyVerdicts)

const toSexy = ({ flagsSexy }: Account): Sexy => (flagsSexy ? 'threat' : 'clean')

const toCredits = ({ balance }: Account) => `${balance.creditRemaining} of ${balance.creditLimit}`

function toState({ suspendedAt, isExpired }: Account): string {
  if (suspendedAt !== null) return 'suspended'
  return isExpired ? 'expired' : 'active'
}

const toJson = (account: Account) => ({
  id: account.id,
  name: account.name,
  plan: account.plan,
  credits_per_period: account.creditsPerPeriod,
  credit_limit: account.balance.creditLimit,
  credit_remaining: account.balance.creditRemaining,
  rate: toRateText(account.rate),
  sexy: toSexy(account),
  download_hosts: account.downloadHosts,
  revision_url: account.revisionUrl,
  verdict_policy: account.verdictPolicy,
  created_date: account.createdAt,
  period_start_date: account.balance.period.start,
  period_end_date: account.balance.period.end,
  expires_at: account.expiresAt,
  state: toState(account),
  suspended_reason: account.suspendedReason,
})

export function makeCreditsCommand(): Command {
  const credits = newCommand('credits', 'grant credits and read the ledger')

  addCommand(credits, 'grant', 'add credits to the current period of an account')
    .requiredOption('--account <id>', 'ID of the account', readId)
    .requiredOption('--amount <n>', 'number of credits', readCredits)
    .option('--note <text>', 'reason, recorded in the ledger')
    .action(
      async ({ account: id, amount, note }: { account: string; amount: number; note?: string }, command: Command) => {
        const granted = await changeStores(async ({ accounts }, audit) => {
          const account = await accounts.grantCredits(id, amount, note ?? null)
          const detail = `${amount}: ${note ?? ''}`
          if (account !== undefined) await audit('credits.grant', id, { accountId: id, detail })
          return account
        })
        printAccount(command, granted, id)
      },
    )

  addCommand(credits, 'ledger', 'show the ledger of an account, newest entries first')
    .requiredOption('--account <id>', 'ID of the account', readId)
    .option('--limit <n>', 'number of rows', readLimit, 50)
    .action(async ({ account: id, limit }: { account: string; limit: number }, command: Command) => {
      const entries = await withStores(async ({ accounts }) => {
        requireFound(await accounts.findAccount(id), `account ${id}`)
        return accounts.listLedger(id, limit)
      })
      const rows = entries.map((e) => [e.at.toISOString(), e.kind, e.amount, e.balance, e.scanId, e.note])
      print(command, entries.map(toEntryJson), toTable(['at', 'kind', 'amount', 'balance', 'scan', 'note'], rows))
    })
  return credits
}

function readLimit(text: string): number {
  if (!/^[1-9]\d{0,5}$/.test(text)) throw new InvalidArgumentError('Enter a whole number from 1 to 999999.')
  return Number(text)
}

const toEntryJson = ({ scanId, ...entry }: LedgerEntry) => ({ ...entry, scan_id: scanId })

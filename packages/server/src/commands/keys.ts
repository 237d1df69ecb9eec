import type { ScanKind } from '@assay/contract'
import type { Command } from 'commander'
import type { ApiKey } from '../domain/accounts/account.ts'
import { type KeyAction, type KeyRestrictions, unrestricted } from '../domain/accounts/keys.ts'
import { OperatorMistake } from '../domain/problem.ts'
import { orNone, readDate, readId, readName, readNetworks, readWords, requireFound, toNullable } from './options.ts'
import { addCommand, changeStores, newCommand, print, toCard, toTable, withStores } from './terminal.ts'

type RestrictionOptions = {
  allow?: KeyAction[] | 'none'
  kinds?: ScanKind[] | 'none'
  networks?: string[] | 'none'
}
type CreateOptions = RestrictionOptions & { account: string; name: string; expires?: Date; test?: boolean }

const actions = { read: 'read', scan: 'scan', submit: 'submit' } as const
const kinds = { malware: 'malware', nsfw: 'nsfw_image' } as const

export function makeKeysCommand(): Command {
  const keys = newCommand('keys', 'create, list, restrict and revoke API keys')

  addRestrictions(addCommand(keys, 'create', 'create a key, and print it once'))
    .requiredOption('--account <id>', 'ID of the account', readId)
    .option('--name <name>', 'name of the key', readName, 'unnamed')
    .option('--expires <date>', 'date from which the key is rejected', readDate)
    .option('--test', 'make a test key, which neither scans nor charges (docs/test-mode.md)')
    .action(async ({ account, name, expires, test, ...given }: CreateOptions, command: Command) => {
      const { key, apiKey } = await changeStores(async ({ accounts, registration }, audit) => {
        requireFound(await accounts.findAccount(account), `account ${account}`)
        const restrictions = toRestrictions(given, unrestricted)
        const options = { name, expiresAt: expires ?? null, isTest: test === true, restrictions }
        const created = await registration.createKey(account, options)
        const detail = `${created.key.id} ${JSON.stringify(created.key.restrictions)}`
        await audit('key.create', name, { accountId: account, detail })
        return created
      })
      const text = `${toCard({ id: key.id, 'API key': apiKey })}\n\nThe key is shown only once. Store it now.`
      print(command, { ...toJson(key), api_key: apiKey }, text)
    })

  addCommand(keys, 'list', 'list API keys')
    .option('--account <id>', 'only keys of this account', readId)
    .action(async ({ account }: { account?: string }, command: Command) => {
      const all = await withStores((stores) => stores.keys.listKeys(account ?? null))
      const columns = ['id', 'account', 'name', 'for', 'prefix', 'last used', 'state', 'restricted to']
      const toRow = (k: ApiKey) => [
        k.name,
        k.isTest ? 'tests' : 'scans',
        `${k.prefix}…`,
        toTime(k.lastUsedAt),
        toState(k),
        toRestrictionsCell(k.restrictions),
      ]
      const rows = all.map((k) => [k.id, k.accountId, ...toRow(k)])
      print(command, all.map(toJson), toTable(columns, rows))
    })

  addRestrictions(addCommand(keys, 'set', 'change the restrictions of a key, from its next request on'))
    .argument('<id>', 'ID of the key, not the key itself', readId)
    .action(async (id: string, given: RestrictionOptions, command: Command) => {
      const key = await changeStores(async (stores, audit) => {
        const found = requireFound(
          (await stores.keys.listKeys(null)).find((one) => one.id === id),
          `key ${id}`,
        )
        const wanted = toRestrictions(given, found.restrictions)
        const restrictions = requireFound(await stores.keys.restrictKey(id, wanted), `key ${id}`)
        const detail = JSON.stringify(restrictions)
        await audit('key.restrict', found.name, { accountId: found.accountId, detail })
        return { ...found, restrictions }
      })
      const restricted = toRestrictionsCell(key.restrictions)
      print(
        command,
        toJson(key),
        restricted === null ? `Key ${id} has no restrictions.` : `Key ${id} is restricted to: ${restricted}.`,
      )
    })

  addCommand(keys, 'revoke', 'revoke a key on all nodes at once')
    .argument('<id>', 'ID of the key, not the key itself', readId)
    .action(async (id: string, _options: unknown, command: Command) => {
      const revoked = await changeStores(async (stores, audit) => {
        const isRevoked = await stores.keys.revokeKey(id)
        if (isRevoked) await audit('key.revoke', id)
        return isRevoked
      })
      if (!revoked) throw new OperatorMistake(`There is no key ${id}.`)
      print(command, { id, revoked }, `Key ${id} is revoked.`)
    })
  return keys
}

const addRestrictions = (command: Command): Command =>
  command
    .option(
      '--allow <actions>',
      'only these actions: read, scan, submit; none removes the restriction',
      orNone(readWords(actions)),
    )
    .option(
      '--kinds <kinds>',
      'only these kinds of scans: malware, nsfw; none removes the restriction',
      orNone(readWords(kinds)),
    )
    .option('--networks <networks>', 'only from these networks; none removes the restriction', orNone(readNetworks))

/** The restrictions of a key after the options were applied. */
const toRestrictions = ({ allow, kinds, networks }: RestrictionOptions, old: KeyRestrictions): KeyRestrictions => ({
  allow: allow === undefined ? old.allow : toNullable(allow),
  kinds: kinds === undefined ? old.kinds : toNullable(kinds),
  networks: networks === undefined ? old.networks : toNullable(networks),
})

const toRestrictionsCell = ({ allow, kinds, networks }: KeyRestrictions): string | null =>
  [allow, kinds, networks].flatMap((list) => list?.join(',') ?? []).join('; ') || null

const toTime = (date: Date | null) => date?.toISOString() ?? 'never'

function toState({ revokedAt, isExpired }: ApiKey): string {
  if (revokedAt !== null) return 'revoked'
  return isExpired ? 'expired' : 'active'
}

const toJson = (key: ApiKey) => ({
  id: key.id,
  account_id: key.accountId,
  name: key.name,
  prefix: key.prefix,
  test: key.isTest,
  restrictions: key.restrictions,
  created_at: key.createdAt,
  last_used_at: key.lastUsedAt,
  expires_at: key.expiresAt,
  revoked_at: key.revokedAt,
  state: toState(key),
})

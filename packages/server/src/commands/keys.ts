import type { Command } from 'commander'
import type { ApiKey } from '../domain/accounts/account.ts'
import { OperatorMistake } from '../domain/problem.ts'
import { readDate, readId, readName, requireFound } from './options.ts'
import { addCommand, changeStores, newCommand, print, toCard, toTable, withStores } from './terminal.ts'

type CreateOptions = { account: string; name: string; expires?: Date; test?: boolean }

export function makeKeysCommand(): Command {
  const keys = newCommand('keys', 'create, list and revoke API keys')

  addCommand(keys, 'create', 'create a key, and print it once')
    .requiredOption('--account <id>', 'ID of the account', readId)
    .option('--name <name>', 'name of the key', readName, 'unnamed')
    .option('--expires <date>', 'date from which the key is rejected', readDate)
    .option('--test', 'make a test key, which neither scans nor charges (docs/test-mode.md)')
    .action(async ({ account, name, expires, test }: CreateOptions, command: Command) => {
      const { key, apiKey } = await changeStores(async ({ accounts, registration }, audit) => {
        requireFound(await accounts.findAccount(account), `account ${account}`)
        const options = { name, expiresAt: expires ?? null, isTest: test === true }
        const created = await registration.createKey(account, options)
        await audit('key.create', name, { accountId: account, detail: created.key.id })
        return created
      })
      const text = `${toCard({ id: key.id, 'API key': apiKey })}\n\nThe key is shown only once. Store it now.`
      print(command, { ...toJson(key), api_key: apiKey }, text)
    })

  addCommand(keys, 'list', 'list API keys')
    .option('--account <id>', 'only keys of this account', readId)
    .action(async ({ account }: { account?: string }, command: Command) => {
      const all = await withStores((stores) => stores.keys.listKeys(account ?? null))
      const columns = ['id', 'account', 'name', 'for', 'prefix', 'last used', 'state']
      const toRow = (k: ApiKey) => [
        k.name,
        k.isTest ? 'tests' : 'scans',
        `${k.prefix}…`,
        toTime(k.lastUsedAt),
        toState(k),
      ]
      const rows = all.map((k) => [k.id, k.accountId, ...toRow(k)])
      print(command, all.map(toJson), toTable(columns, rows))
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
  created_at: key.createdAt,
  last_used_at: key.lastUsedAt,
  expires_at: key.expiresAt,
  revoked_at: key.revokedAt,
  state: toState(key),
})

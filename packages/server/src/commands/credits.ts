import { type Command, InvalidArgumentError } from 'commander'
import type { LedgerEntry } from '../domain/accounts/account.ts'
import { printAccount } from './accounts.ts'
import { readCredits, readId, requireFound } from './options.ts'
import { addCommand, changeStores, newCommand, print, toTable, withStores } from './terminal.ts'

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
      print(command, entries.map(toJson), toTable(['at', 'kind', 'amount', 'balance', 'scan', 'note'], rows))
    })
  return credits
}

function readLimit(text: string): number {
  if (!/^[1-9]\d{0,5}$/.test(text)) throw new InvalidArgumentError('Enter a whole number from 1 to 999999.')
  return Number(text)
}

const toJson = ({ scanId, ...entry }: LedgerEntry) => ({ ...entry, scan_id: scanId })

import type { Command } from 'commander'
import { readId, requireFound } from './options.ts'
import { addCommand, newCommand, print, toCard, withOffice } from './terminal.ts'

export function makeWebhooksCommand(): Command {
  const webhooks = newCommand('webhooks', 'manage webhook secrets')

  addCommand(webhooks, 'rotate-secret', 'give an account a new webhook secret; the old one also signs for 24 hours')
    .requiredOption('--account <id>', 'the account', readId)
    .action(async ({ account }: { account: string }, command: Command) => {
      const rotated = await withOffice(({ registration }) => registration.rotateWebhookSecret(account))
      const { webhookSecret, previousUntil } = requireFound(rotated, `account ${account}`)
      const json = { id: account, webhook_secret: webhookSecret, previous_until: previousUntil }
      const card = { 'webhook secret': webhookSecret, 'old one until': previousUntil.toISOString() }
      print(command, json, `${toCard(card)}\n\nThe secret is shown this once; store it now.`)
    })
  return webhooks
}

import type { Command } from 'commander'
import { OperatorMistake } from '../domain/problem.ts'
import { addCommand, newCommand, print, withStores } from './terminal.ts'

export function makeOperatorsCommand(): Command {
  const operators = newCommand('operators', 'manage access to the console')

  addCommand(operators, 'invite', 'create a one-time link that invites an operator').action(
    async (_options: unknown, command: Command) => {
      const { token, expiresAt } = await withStores(({ auth }) => auth.invitations.inviteOperator())
      printLink(command, token, expiresAt)
    },
  )

  addCommand(operators, 'reset', 'create a one-time link with which a console user sets a new password')
    .argument('<email>', 'email address of the user')
    .option('--forget-app', 'also remove the authenticator app of the user')
    .action(async (email: string, { forgetApp = false }: { forgetApp?: boolean }, command: Command) => {
      const link = await withStores(({ auth }) => auth.invitations.resetPassword(email, { removesTotp: forgetApp }))
      if (link === undefined) throw new OperatorMistake(`There is no console user with the address ${email}.`)
      printLink(command, link.token, link.expiresAt)
    })
  return operators
}

function printLink(command: Command, token: string, expiresAt: Date) {
  const path = `/console/welcome#${token}`
  print(
    command,
    { path, expires_at: expiresAt },
    `Open this path at the address of the service before ${expiresAt.toISOString()}. The link works once:\n\n  ${path}`,
  )
}

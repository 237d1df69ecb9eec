import type { Command } from 'commander'
import { OperatorMistake } from '../domain/problem.ts'
import { addCommand, newCommand, print, withStores } from './terminal.ts'

export function makeOperatorsCommand(): Command {
  const operators = newCommand('operators', 'let people into the console')

  addCommand(operators, 'invite', 'make a one-time link for an operator').action(
    async (_options: unknown, command: Command) => {
      const { token, expiresAt } = await withStores(({ auth }) =>
        auth.invitations.invite({ role: 'operator', accountId: null }),
      )
      printLink(command, token, expiresAt)
    },
  )

  addCommand(operators, 'reset', 'make a one-time link for a new password, for anybody who uses the console')
    .argument('<email>', 'their address')
    .option('--forget-app', 'ask them for no code any more: the authenticator app is lost too')
    .action(async (email: string, { forgetApp = false }: { forgetApp?: boolean }, command: Command) => {
      const link = await withStores(({ auth }) => auth.invitations.resetPassword(email, { forgetsApp: forgetApp }))
      if (link === undefined) throw new OperatorMistake(`Nobody has the address ${email}.`)
      printLink(command, link.token, link.expiresAt)
    })
  return operators
}

function printLink(command: Command, token: string, expiresAt: Date) {
  const path = `/console/welcome#${token}`
  print(
    command,
    { path, expires_at: expiresAt },
    `Open this at the address of the service, once, before ${expiresAt.toISOString()}:\n\n  ${path}`,
  )
}

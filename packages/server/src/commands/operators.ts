import type { Command } from 'commander'
import type { Stores } from '../compose/stores.ts'
import type { Member } from '../domain/ports/member-store.ts'
import { OperatorMistake } from '../domain/problem.ts'
import { toCommandActor } from '../runtime/process.ts'
import { addCommand, type CommandAudit, changeStores, newCommand, print, toTable, withStores } from './terminal.ts'

export function makeOperatorsCommand(): Command {
  const operators = newCommand('operators', 'manage access to the console')

  addCommand(operators, 'invite', 'create a one-time link that invites an operator').action(
    async (_options: unknown, command: Command) => {
      const { token, expiresAt } = await changeStores(async ({ auth }, audit) => {
        const link = await auth.invitations.inviteOperator()
        await audit('operator.invite')
        return link
      })
      printLink(command, token, expiresAt)
    },
  )

  addCommand(operators, 'reset', 'create a one-time link with which a console user sets a new password')
    .argument('<email>', 'email address of the user')
    .option('--forget-app', 'also remove the authenticator app of the user')
    .action(async (email: string, { forgetApp = false }: { forgetApp?: boolean }, command: Command) => {
      const link = await changeStores(async ({ auth }, audit) => {
        const options = { removesTotp: forgetApp, actor: toCommandActor() }
        const created = await auth.invitations.resetPassword(email, options)
        if (created !== undefined) await audit('password.invite-reset', email)
        return created
      })
      if (link === undefined) throw new OperatorMistake(`There is no console user with the address ${email}.`)
      printLink(command, link.token, link.expiresAt)
    })

  addCommand(operators, 'list', 'list all operators').action(async (_options: unknown, command: Command) => {
    const found = await withStores(({ auth }) => auth.members.listOperators())
    const rows = found.map((one) => [
      one.email,
      one.name,
      one.totpConfirmedAt === null ? 'no' : 'yes',
      one.lastSeenAt?.toISOString() ?? null,
      one.suspendedAt === null ? 'active' : 'suspended',
    ])
    print(command, found.map(toJson), toTable(['email', 'name', 'app', 'last seen', 'state'], rows))
  })

  for (const [name, about, done] of [
    ['suspend', 'sign an operator out and refuse further sign-ins until they are resumed', 'is suspended'],
    ['resume', 'let a suspended operator sign in again', 'can sign in again'],
    ['remove', 'remove an operator and their memberships in all accounts', 'is removed'],
  ] as const) {
    addCommand(operators, name, about)
      .argument('<email>', 'email address of the operator')
      .action(async (email: string, _options: unknown, command: Command) => {
        const operator = await changeStores(({ auth }, audit) => changeOperator(auth, audit, name, email))
        print(command, { id: operator.id, email: operator.email, done: name }, `${operator.email} ${done}.`)
      })
  }
  return operators
}

async function changeOperator(
  { members }: Stores['auth'],
  audit: CommandAudit,
  change: 'suspend' | 'resume' | 'remove',
  email: string,
): Promise<Member> {
  const operator = (await members.listOperators()).find((one) => one.email.toLowerCase() === email.toLowerCase())
  if (operator === undefined) throw new OperatorMistake(`There is no operator with the address ${email}.`)
  // The command line can invite the next operator, so it may also remove the last one.
  const options = { mayBeLast: true }
  if (change === 'remove') await members.removeOperator(operator.id, options)
  else await members.suspendOperator(operator.id, change === 'suspend', options)
  await audit(`operator.${change}`, operator.email)
  return operator
}

const toJson = (operator: Member) => ({
  id: operator.id,
  email: operator.email,
  name: operator.name,
  has_totp: operator.totpConfirmedAt !== null,
  created_at: operator.createdAt,
  last_seen_at: operator.lastSeenAt,
  suspended_at: operator.suspendedAt,
})

function printLink(command: Command, token: string, expiresAt: Date) {
  const path = `/console/welcome#${token}`
  print(
    command,
    { path, expires_at: expiresAt },
    `Open this path at the address of the service before ${expiresAt.toISOString()}. The link works once:\n\n  ${path}`,
  )
}

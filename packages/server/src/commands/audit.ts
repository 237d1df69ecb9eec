import { type Command, InvalidArgumentError } from 'commander'
import type { AuditHead, AuditVerification } from '../domain/ports/operations.ts'
import { addCommand, newCommand, print, withStores } from './terminal.ts'

export function makeAuditCommand(): Command {
  const audit = newCommand('audit', 'check the audit log')

  addCommand(audit, 'verify', 'check that no row of the audit log was changed or removed')
    .option('--head <id:hash>', 'a head that was printed before, which the log must contain', readHead)
    .action(async ({ head }: { head?: AuditHead }, command: Command) => {
      const verification = await withStores(({ auth }) => auth.audit.verify(head))
      print(command, toJson(verification), toText(verification))
      if (verification.fault !== undefined) process.exitCode = 1
    })
  return audit
}

function readHead(text: string): AuditHead {
  const [, id, hash = ''] = /^(\d{1,15}):([0-9a-f]{64})$/.exec(text) ?? []
  if (id === undefined) throw new InvalidArgumentError('Enter a head as audit verify prints it.')
  return { id: Number(id), hash }
}

const toHeadText = ({ id, hash }: AuditHead) => `${id}:${hash}`

const toJson = ({ rows, head, fault }: AuditVerification) => ({ rows, head: toHeadText(head), fault: fault ?? null })

const toText = ({ rows, head, fault }: AuditVerification) =>
  fault === undefined
    ? `The audit log is complete and unchanged: ${rows} ${rows === 1 ? 'row' : 'rows'}.\nKeep this head where nobody can change it: ${toHeadText(head)}`
    : `${fault}\nRows before it that are complete and unchanged: ${rows}.`

import type { ListEntry as EntryView, operatorRoutes } from '@assay/contract/admin'
import { validate as isUuid, v7 as newId } from 'uuid'
import type { AuditLog } from '../domain/ports/audit-log.ts'
import type { Clock } from '../domain/ports/clock.ts'
import type { ListEntry, ListStore } from '../domain/ports/list-store.ts'
import { Problem } from '../domain/problem.ts'
import { type Handlers, requireThere } from './call.ts'

export type ListHandlerDeps = {
  lists: ListStore
  /** Makes a change count here at once. */
  refreshLists(): Promise<void>
  audit: AuditLog
  clock: Clock
}

type Names = 'listEntries' | 'addListEntry' | 'removeListEntry'

/** What is allowed or blocked by hash or signal. */
export function makeListHandlers({
  lists,
  refreshLists,
  audit,
  clock,
}: ListHandlerDeps): Handlers<Names & keyof typeof operatorRoutes> {
  return {
    listEntries: async () => (await lists.listEntries(clock.now())).map(toView),

    async addListEntry({ who, origin, body }) {
      const { list, matches, reason } = body
      const value = body.value.trim()
      const wrong = checkValue(matches, value)
      if (wrong !== undefined) throw new Problem({ kind: 'validation', errors: { value: [wrong] } })
      const expiresAt = body.expires_at === undefined || body.expires_at === null ? null : new Date(body.expires_at)
      if (expiresAt !== null && expiresAt <= clock.now()) {
        throw new Problem({ kind: 'validation', errors: { expires_at: ['Enter a time in the future.'] } })
      }
      const entry: ListEntry = {
        ...{
          id: newId(),
          list,
          matches,
          value: matches === 'sha256' ? value.toLowerCase() : value,
          reason: reason.trim(),
        },
        ...{ createdBy: who.actor, createdAt: clock.now(), expiresAt },
      }
      await lists.addEntry(entry)
      await refreshLists()
      await audit.note({
        actor: who.actor,
        action: `list.${list}`,
        target: entry.value,
        detail: entry.reason,
        address: origin.address,
      })
      return toView(entry)
    },

    async removeListEntry({ who, origin, params }) {
      const { id = '' } = params
      requireThere(isUuid(id) && (await lists.removeEntry(id)), 'entry')
      await refreshLists()
      await audit.note({ actor: who.actor, action: 'list.remove', target: id, address: origin.address })
    },
  }
}

function checkValue(matches: 'sha256' | 'signal', value: string): string | undefined {
  if (matches === 'sha256')
    return /^[0-9a-f]{64}$/i.test(value) ? undefined : 'Enter a SHA-256 hash: 64 hexadecimal digits.'
  return /^(Virus|Classification|Error):\S/.test(value)
    ? undefined
    : 'Enter a signal as shown in results, such as Virus:Eicar-Test-Signature.'
}

const toView = (entry: ListEntry): EntryView => ({
  ...{ id: entry.id, list: entry.list, matches: entry.matches, value: entry.value, reason: entry.reason },
  created_by: entry.createdBy,
  created_at: entry.createdAt.toISOString(),
  expires_at: entry.expiresAt?.toISOString() ?? null,
})

import type { ListEntry as EntryView } from '@assay/contract/admin'
import { v7 as newId } from 'uuid'
import type { Clock } from '../domain/clock.ts'
import type { ListEntry, ListStore } from '../domain/ports/hash-list-store.ts'
import { Problem } from '../domain/problem.ts'
import { getId, type Handlers, readExpiry, requireFound } from './call.ts'

export type ListHandlerDeps = {
  lists: ListStore
  /** Applies a change on this node at once. */
  refreshLists(): Promise<void>
  clock: Clock
}

/** Handlers for the allow list and the block list. */
export function makeListHandlers(deps: ListHandlerDeps) {
  const { lists, refreshLists, clock } = deps

  return {
    listEntries: async () => (await lists.listEntries()).map(toView),

    async addListEntry({ who, audit, atomically, body }) {
      const { list, matches, reason } = body
      const value = body.value.trim()
      const error = checkValue(matches, value)
      if (error !== undefined) throw new Problem({ kind: 'validation', errors: { value: [error] } })
      const entry = {
        id: newId(),
        list,
        matches,
        value: matches === 'sha256' ? value.toLowerCase() : value,
        reason: reason.trim(),
        createdBy: who.actor,
        expiresAt: readExpiry(body.expires_at, clock),
      }
      const added = await atomically(async () => {
        const stored = await lists.addEntry(entry)
        await audit(`list.${list}`, entry.value, { detail: entry.reason })
        return stored
      })
      await refreshLists()
      return toView(added)
    },

    async removeListEntry(call) {
      const id = getId(call, 'entry')
      await call.atomically(async () => {
        requireFound(await lists.removeEntry(id), 'entry')
        await call.audit('list.remove', id)
      })
      await refreshLists()
    },
  } satisfies Partial<Handlers>
}

function checkValue(matches: 'sha256' | 'signal', value: string): string | undefined {
  if (matches === 'sha256')
    return /^[0-9a-f]{64}$/i.test(value) ? undefined : 'Enter a SHA-256 hash: 64 hexadecimal digits.'
  return /^(Virus|Classification|Error):\S/.test(value)
    ? undefined
    : 'Enter a signal as shown in results, such as Virus:Eicar-Test-Signature.'
}

const toView = (entry: ListEntry): EntryView => ({
  id: entry.id,
  list: entry.list,
  matches: entry.matches,
  value: entry.value,
  reason: entry.reason,
  created_by: entry.createdBy,
  created_at: entry.createdAt.toISOString(),
  expires_at: entry.expiresAt?.toISOString() ?? null,
})

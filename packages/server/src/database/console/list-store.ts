import type { Pool } from 'pg'
import type { ListEntry, ListStore, NewListEntry } from '../../domain/ports/hash-list-store.ts'
import { sendInTransaction } from '../notifications.ts'
import { changeRows, findRow, inTransaction, listRows, type Queryable } from '../query.ts'

export function makeListStore({ pool }: { pool: Pool }): ListStore {
  return {
    listEntries: () =>
      listRows<ListEntry>(
        pool,
        `select id, list, matches, value, reason, created_by as "createdBy", created_at as "createdAt",
           expires_at as "expiresAt"
         from list_entries where expires_at is null or expires_at > now() order by created_at desc limit 10000`,
      ),
    addEntry: (entry) => inTransaction(pool, (client) => addEntry(client, entry)),
    removeEntry: (id) =>
      inTransaction(pool, async (client) => {
        const removed = await findRow<ChangedEntry>(
          client,
          'delete from list_entries where id = $1 returning matches, value',
          [id],
        )
        if (removed !== undefined) await noteChanges(client, [removed])
        return removed !== undefined
      }),
    deleteExpired: () =>
      inTransaction(pool, async (client) => {
        const expired = await listRows<ChangedEntry>(
          client,
          'delete from list_entries where expires_at < now() returning matches, value',
        )
        if (expired.length > 0) await noteChanges(client, expired)
        return expired.length
      }),
  }
}

async function addEntry(client: Queryable, entry: NewListEntry): Promise<ListEntry> {
  const { id, list, matches, value, reason, createdBy, expiresAt } = entry
  const added = await findRow<{ createdAt: Date }>(
    client,
    `insert into list_entries (id, list, matches, value, reason, created_by, created_at, expires_at)
         values ($1, $2, $3, $4, $5, $6, now(), $7)
         on conflict (list, matches, value) do update set id = excluded.id, reason = excluded.reason,
           created_by = excluded.created_by, created_at = excluded.created_at, expires_at = excluded.expires_at
         returning created_at as "createdAt"`,
    [id, list, matches, value, reason, createdBy, expiresAt],
  )
  if (added === undefined) throw new Error(`Entry ${id} was not added`)
  await noteChanges(client, [entry])
  return { ...entry, ...added }
}

type ChangedEntry = Pick<ListEntry, 'matches' | 'value'>

/** Lets workers revise the results with these hashes, and other nodes read the lists anew. */
async function noteChanges(client: Queryable, changed: ChangedEntry[]) {
  const hashes = changed.filter(({ matches }) => matches === 'sha256').map(({ value }) => Buffer.from(value, 'hex'))
  if (hashes.length > 0) {
    await changeRows(client, 'insert into revision_work (hashes) values ($1)', [hashes])
  }
  await sendInTransaction(client, 'hash-lists')
}

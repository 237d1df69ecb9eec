import type { Pool } from 'pg'
import type { ListEntry, ListStore } from '../../domain/ports/list-store.ts'
import { changeRows, findRow, listRows } from '../query.ts'

export function makeListStore({ pool }: { pool: Pool }): ListStore {
  return {
    listEntries: () =>
      listRows<ListEntry>(
        pool,
        `select id, list, matches, value, reason, created_by as "createdBy", created_at as "createdAt",
           expires_at as "expiresAt"
         from list_entries where expires_at is null or expires_at > now() order by created_at desc limit 10000`,
      ),
    async addEntry(entry) {
      const { id, list, matches, value, reason, createdBy, expiresAt } = entry
      const added = await findRow<{ createdAt: Date }>(
        pool,
        `insert into list_entries (id, list, matches, value, reason, created_by, created_at, expires_at)
         values ($1, $2, $3, $4, $5, $6, now(), $7)
         on conflict (list, matches, value) do update set id = excluded.id, reason = excluded.reason,
           created_by = excluded.created_by, created_at = excluded.created_at, expires_at = excluded.expires_at
         returning created_at as "createdAt"`,
        [id, list, matches, value, reason, createdBy, expiresAt],
      )
      if (added === undefined) throw new Error(`Entry ${id} was not added`)
      return { ...entry, ...added }
    },
    async removeEntry(id) {
      return (await changeRows(pool, 'delete from list_entries where id = $1', [id])) === 1
    },
    deleteExpired: () => changeRows(pool, 'delete from list_entries where expires_at < now()'),
  }
}

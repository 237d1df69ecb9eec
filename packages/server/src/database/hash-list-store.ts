import { finished } from 'node:stream/promises'
import type { Pool } from 'pg'
import { from as copyFrom } from 'pg-copy-streams'
import type {
  ActiveHashLists,
  HashList,
  HashListStore,
  KnownHash,
  ListEntry,
  ListStore,
  NewListEntry,
} from '../domain/ports/hash-list-store.ts'
import { OperatorMistake } from '../domain/problem.ts'
import { sendInTransaction } from './notifications.ts'
import {
  changeRows,
  findRow,
  inTransaction,
  listRows,
  type Queryable,
  runCopy,
  runInPieces,
  runLongStatement,
  withoutTimeouts,
} from './query.ts'

/** Advisory lock: changes of which lists are active wait for each other. */
const listsLock = 52_115_010
/** An import that adds no hashes for so long counts as abandoned. */
const importLease = `interval '10 minutes'`
const deletePieceSize = 20_000

const columns = `id::text, name, verdict, origin, hashes::float8 as hashes, created_by as "createdBy",
  activated_at as "activatedAt"`

export function makeHashListStore({ pool }: { pool: Pool }): HashListStore {
  return {
    listActive: () =>
      listRows<HashList>(pool, `select ${columns} from hash_lists where state = 'active' order by origin, name`),

    async findActive() {
      const found = await findRow<ActiveHashLists>(
        pool,
        `select coalesce(array_agg(distinct verdict), '{}') as verdicts,
           coalesce(string_agg(id::text, ',' order by id), '') as version
         from hash_lists where state = 'active' and origin = 'import'`,
      )
      return found ?? { verdicts: [], version: '' }
    },

    findHash: (sha256) => findRow<KnownHash>(pool, findHash, [Buffer.from(sha256, 'hex')]),

    listMatches: (sha256) => listRows<KnownHash>(pool, listMatches, [Buffer.from(sha256, 'hex')]),

    async beginImport({ name, verdict, origin, createdBy }) {
      const begun = await findRow<{ id: string }>(
        pool,
        `insert into hash_lists (name, verdict, origin, state, created_by, importing_until)
         values ($1, $2, $3, 'importing', $4, now() + ${importLease}) returning id::text`,
        [name, verdict, origin, createdBy],
      )
      if (begun === undefined) throw new Error(`List ${name} was not added`)
      await pool.query(`create unlogged table ${toStaging(begun.id)} (sha256 bytea not null, name text)`)
      return begun.id
    },

    addHashes: (listId, { rows, count }) =>
      inTransaction(
        pool,
        async (client) => {
          await extendImport(client, listId, count, importLease)
          const copy = copyFrom(addHashes(listId))
          await runCopy(client, copy, () => finished(copy.end(rows)))
        },
        { copies: true },
      ),

    sortHashes: (listId) =>
      inTransaction(
        pool,
        async (client) => {
          const staged = await extendImport(client, listId, 0, `interval '1 hour'`)
          const { rowCount } = await runLongStatement(client, sortHashes(listId))
          const { rows } = await runLongStatement<{ count: number }>(
            client,
            `select count(*)::float8 as count from ${toStaging(listId)}`,
          )
          // PostgreSQL empties the table when it recovers from a crash.
          if (rows[0]?.count !== staged) throw new OperatorMistake(lost)
          await client.query(`drop table ${toStaging(listId)}`)
          const hashes = rowCount ?? 0
          await changeRows(client, 'update hash_lists set hashes = $2 where id = $1', [listId, hashes])
          return { hashes, duplicates: staged - hashes }
        },
        // The rows are sorted on the disk, so that the process of PostgreSQL stays small.
        { settings: [...withoutTimeouts, "work_mem = '32MB'"] },
      ),

    activate: (listId) => inTransaction(pool, (client) => activate(client, listId), { lock: listsLock }),

    abandon: (listId) =>
      inTransaction(pool, async (client) => {
        const count = await changeRows(client, `${setRemoved} where id = $1 and state = 'importing'`, [listId])
        if (count === 0) return
        await client.query(`drop table if exists ${toStaging(listId)}`)
        // The cleanup deletes hashes that are rows already.
        const hasRows = 'exists (select from listed_hashes where list_id = $1)'
        await changeRows(client, `delete from hash_lists where id = $1 and not ${hasRows}`, [listId])
      }),

    remove: (origin, name) =>
      inTransaction(pool, async (client) => (await removeActive(client, origin, name)) !== undefined, {
        lock: listsLock,
      }),

    async deleteRemoved() {
      await changeRows(pool, `${setRemoved} where state = 'importing' and importing_until < now()`)
      // The hashes of a list are needed until the results with them are revised.
      const removed = await listRows<{ id: string }>(
        pool,
        `select id::text from hash_lists
         where state = 'removed' and not exists (select from revision_work where hash_lists.id = any(list_ids))`,
      )
      let deleted = 0
      for (const { id } of removed) {
        await pool.query(`drop table if exists ${toStaging(id)}`)
        deleted += await runInPieces(deletePieceSize, () => changeRows(pool, deletePiece, [id]))
        await changeRows(pool, 'delete from hash_lists where id = $1', [id])
      }
      return deleted
    },
  }
}

/**
 * Hashes are collected in a table of their own and sorted before they become rows of the list: in the order of a file
 * each row would change another page of the index. The table needs no log, because an import that fails begins again.
 */
const toStaging = (listId: string) => `hash_import_${BigInt(listId)}`

/** Adds to the number of collected hashes, and returns it. */
async function extendImport(client: Queryable, listId: string, added: number, lease: string): Promise<number> {
  const list = await findRow<{ hashes: number }>(
    client,
    `update hash_lists set hashes = hashes + $2, importing_until = now() + ${lease}
     where id = $1 and state = 'importing' returning hashes::float8 as hashes`,
    [listId, added],
  )
  if (list === undefined) throw new OperatorMistake(abandoned)
  return list.hashes
}

const lost = 'The database restarted during the import. Nothing was imported; start it again.'
const abandoned =
  'The import took no rows for ten minutes and counts as abandoned. Nothing was imported; start it again.'

async function activate(client: Queryable, listId: string) {
  const begun = await findRow<HashList>(client, `select ${columns} from hash_lists where id = $1`, [listId])
  if (begun === undefined) throw new OperatorMistake(abandoned)
  const replaced = await removeActive(client, begun.origin, begun.name)
  const list = await findRow<HashList>(
    client,
    `update hash_lists set state = 'active', activated_at = now(), importing_until = null
     where id = $1 and state = 'importing' returning ${columns}`,
    [listId],
  )
  if (list === undefined) throw new OperatorMistake(abandoned)
  await noteChangedList(client, listId)
  return { list, replaced }
}

async function removeActive(client: Queryable, origin: string, name: string): Promise<HashList | undefined> {
  const removed = await findRow<HashList>(
    client,
    `${setRemoved} where origin = $1 and name = $2 and state = 'active' returning ${columns}`,
    [origin, name],
  )
  if (removed !== undefined) await noteChangedList(client, removed.id)
  return removed
}

/** Lets workers revise the results with the hashes of the list, and nodes read anew which lists there are. */
async function noteChangedList(client: Queryable, listId: string) {
  await changeRows(client, 'insert into revision_work (list_ids) values (array[$1::bigint])', [listId])
  await sendInTransaction(client, 'hash-lists')
}

const setRemoved = `update hash_lists set state = 'removed', importing_until = null`

/** The lateral query makes PostgreSQL look into the index once for each list, whatever it believes about their sizes. */
const ofHash = `
select verdict, found.name, hash_lists.name as list
from hash_lists cross join lateral (
  select name from listed_hashes where list_id = hash_lists.id and sha256 = $1 limit 1
) as found
where state = 'active'`

export const findHash = `
-- name: find-listed-hash
${ofHash} and origin = 'import'
-- 'bad' comes before 'good'.
order by verdict, hash_lists.id limit 1`

const listMatches = `${ofHash} order by verdict, hash_lists.id`

/** COPY in the format CSV takes all characters but these three literally, and names have no control characters. */
const addHashes = (listId: string) =>
  `copy ${toStaging(listId)} (sha256, name) from stdin (format csv, delimiter E'\\t', quote E'\\b', escape E'\\b')`

const sortHashes = (listId: string) => `
insert into listed_hashes (list_id, sha256, name)
select distinct on (sha256) ${BigInt(listId)}, sha256, name from ${toStaging(listId)} order by sha256`

const deletePiece = `
delete from listed_hashes where ctid = any(array(
  select ctid from listed_hashes where list_id = $1 limit ${deletePieceSize}
))`

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
        if (removed !== undefined) await noteChangedEntries(client, [removed])
        return removed !== undefined
      }),
    deleteExpired: () =>
      inTransaction(pool, async (client) => {
        const expired = await listRows<ChangedEntry>(
          client,
          'delete from list_entries where expires_at < now() returning matches, value',
        )
        if (expired.length > 0) await noteChangedEntries(client, expired)
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
  await noteChangedEntries(client, [entry])
  return { ...entry, ...added }
}

type ChangedEntry = Pick<ListEntry, 'matches' | 'value'>

/** Lets workers revise the results with these hashes, and other nodes read the lists anew. */
async function noteChangedEntries(client: Queryable, changed: ChangedEntry[]) {
  const hashes = changed.filter(({ matches }) => matches === 'sha256').map(({ value }) => Buffer.from(value, 'hex'))
  if (hashes.length > 0) await changeRows(client, 'insert into revision_work (hashes) values ($1)', [hashes])
  await sendInTransaction(client, 'hash-lists')
}

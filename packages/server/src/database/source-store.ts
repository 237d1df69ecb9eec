import type { Pool } from 'pg'
import type { ClaimedSource, Source, SourceStore } from '../domain/ports/source-store.ts'
import { sendInTransaction } from './notifications.ts'
import { changeRows, findRow, inTransaction, listRows } from './query.ts'
import { filesLock, removeSourceFiles, replaceSourceFiles } from './signature-store.ts'

/** After a failure the next attempt comes after this time, or after the hours of the source if they are fewer. */
const retryHours = 1

export function makeSourceStore({ pool }: { pool: Pool }): SourceStore {
  return {
    listSources: () => listRows<Source>(pool, `select ${columns} from signature_sources order by name`),
    addSource({ name, url, fileName, everyHours, maxMegabytes, sha256, minisignKey, publisher, licence }) {
      return changeDue(
        pool,
        `insert into signature_sources
           (name, url, file_name, every_hours, max_megabytes, sha256, minisign_key, publisher, licence)
         values ($1, $2, $3, $4, $5, $6, $7, $8, $9) on conflict (name) do nothing`,
        [name, url, fileName, everyHours, maxMegabytes, sha256, minisignKey, publisher, licence],
      )
    },
    removeSource: (name) =>
      inTransaction(
        pool,
        async (client) => {
          await removeSourceFiles(client, name, [])
          const count = await changeRows(client, 'delete from signature_sources where name = $1', [name])
          await sendInTransaction(client, 'signatures')
          return count === 1
        },
        { lock: filesLock },
      ),
    // Without its validators the next download is complete, and is tried with the new list of names.
    releaseSignature: (name, signature) =>
      changeDue(
        pool,
        `update signature_sources set released = array_append(array_remove(released, $2), $2), etag = null,
           last_modified = null, next_at = now() where name = $1`,
        [name, signature],
      ),
    makeDue: (name) => changeDue(pool, 'update signature_sources set next_at = now() where name = $1', [name]),

    async claim(leaseMs, name) {
      const row = await findRow<ClaimedSource & { etag: string | null; lastModified: string | null }>(
        pool,
        claimSource,
        [leaseMs, name ?? null],
      )
      if (row === undefined) return undefined
      const { etag, lastModified, ...source } = row
      return { ...source, validators: { etag, lastModified } }
    },
    async extend(tokens, leaseMs) {
      const rows = await listRows<{ token: string }>(
        pool,
        `update signature_sources set leased_until = now() + $2::float8 * interval '1 millisecond'
         where lease_token = any ($1::uuid[]) returning lease_token as token`,
        [tokens, leaseMs],
      )
      return rows.map(({ token }) => token)
    },
    async release(tokens) {
      await changeRows(
        pool,
        'update signature_sources set lease_token = null, leased_until = null where lease_token = any ($1::uuid[])',
        [tokens],
      )
    },
    ...makeRecorders(pool),
  }
}

/** The results of an update, each of which ends the lease. */
function makeRecorders(pool: Pool): Pick<SourceStore, 'recordSet' | 'recordUnchanged' | 'recordFailure'> {
  return {
    recordSet: ({ name, token, released }, { files, keep, signatures, held, refused, testedFiles, validators }) =>
      inTransaction(
        pool,
        async (client) => {
          const recorded = await changeRows(
            client,
            `update signature_sources set ${ended}, ${toNext('every_hours')}, error = null, checked_at = now(),
               changed_at = now(), signatures = $4, held = $5, refused = $6, tested_files = $7,
               etag = case when released = $3 then $8 end, last_modified = case when released = $3 then $9 end
             where name = $1 and lease_token = $2`,
            [
              name,
              token,
              released,
              signatures,
              JSON.stringify(held),
              JSON.stringify(refused),
              testedFiles,
              validators.etag,
              validators.lastModified,
            ],
          )
          if (recorded === 1) await replaceSourceFiles(client, name, { files, keep })
          return recorded === 1
        },
        { lock: filesLock },
      ),
    recordUnchanged: async ({ name, token, released }) =>
      (await changeRows(
        pool,
        `update signature_sources set ${ended}, ${toNext('every_hours')}, error = null, checked_at = now()
         where name = $1 and lease_token = $2`,
        [name, token, released],
      )) === 1,
    recordFailure: async ({ name, token, released }, error) =>
      (await changeRows(
        pool,
        `update signature_sources set ${ended}, ${toNext(`least(every_hours, ${retryHours})`)}, error = $4
         where name = $1 and lease_token = $2`,
        [name, token, released, error],
      )) === 1,
  }
}

/** Makes an update due, and notifies workers. Returns whether there was a row to change. */
const changeDue = (pool: Pool, statement: string, values: unknown[]): Promise<boolean> =>
  inTransaction(pool, async (client) => {
    const count = await changeRows(client, statement, values)
    await sendInTransaction(client, 'sources')
    return count === 1
  })

const columns = `
name, url, file_name as "fileName", every_hours as "everyHours", max_megabytes as "maxMegabytes", sha256,
minisign_key as "minisignKey", publisher, licence, released, signatures, held, refused, tested_files as "testedFiles",
checked_at as "checkedAt", changed_at as "changedAt", attempted_at as "attemptedAt", error, created_at as "createdAt",
greatest(0, extract(epoch from now() - coalesce(checked_at, created_at)))::float8 as "ageSeconds"
`

const ended = 'lease_token = null, leased_until = null, attempted_at = now()'
/**
 * The time of the next update. $3 has the released names that the update knew: another update is due at once when the
 * operator has released one meanwhile.
 */
const toNext = (hours: string) =>
  `next_at = case when released <> $3 then now() when every_hours > 0 then now() + ${hours} * interval '1 hour' end`

/** A named source is claimed before it is due, but not while another process holds it. */
const claimSource = `
with due as materialized (
  select name from signature_sources
  where (leased_until is null or leased_until <= now()) and (name = $2 or ($2::text is null and next_at <= now()))
  order by next_at limit 1 for update skip locked
)
update signature_sources
set lease_token = gen_random_uuid(), leased_until = now() + $1::float8 * interval '1 millisecond'
where name in (select name from due)
returning ${columns}, lease_token as token, etag, last_modified as "lastModified"
`

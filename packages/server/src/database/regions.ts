import pg, { type Pool } from 'pg'
import { OperatorMistake } from '../domain/problem.ts'
import { makeConnector } from './connector.ts'
import { changeRows, findRow, listRows, type Queryable } from './query.ts'
import { findRecordedKey } from './secret-stores.ts'

/**
 * Regions: a satellite region follows the accounts of a home region by logical replication. Only these tables are
 * replicated; credits, rate windows, jobs, content and results stay in their region.
 */
const sharedTables = ['plans', 'accounts', 'api_keys', 'download_credentials']

const publication = 'assay_accounts'
const subscription = 'assay_home'
const guard = 'assay_made_in_home_region'
const refusal =
  'Accounts, keys, plans and download credentials belong to the home region. Change them there; they are replicated within seconds.'
/** A code of its own, by which the error of the trigger is told from others. */
const refusalCode = 'AS409'

/** The reason why a satellite refused a change that belongs to the home region. */
export const findRegionConflict = (error: unknown): string | undefined =>
  (error as { code?: unknown } | null)?.code === refusalCode ? refusal : undefined

const toSlotName = (region: string) => `assay_${region.replaceAll('-', '_')}`

/** Lets other regions follow the accounts of this one. Repeating it changes nothing. */
export async function publishAccounts(pool: Pool): Promise<void> {
  const setting = await findRow<{ wal_level: string }>(pool, 'show wal_level')
  if (setting?.wal_level !== 'logical') {
    throw new OperatorMistake(
      'This PostgreSQL server does not record changes for replication. Set wal_level = logical, restart it, and try again.',
    )
  }
  if (await isPublished(pool)) return
  await pool.query(`create publication ${publication} for table ${sharedTables.join(', ')}`)
}

export const isPublished = async (db: Queryable): Promise<boolean> =>
  (await findRow(db, 'select from pg_publication where pubname = $1', [publication])) !== undefined

type Follower = { slot: string; active: boolean; behindBytes: number }

/** Satellite regions that follow this one. */
export const listFollowers = (pool: Pool): Promise<Follower[]> =>
  listRows<Follower>(
    pool,
    `select slot_name as slot, active,
       coalesce(pg_wal_lsn_diff(pg_current_wal_lsn(), confirmed_flush_lsn), 0)::float8 as "behindBytes"
     from pg_replication_slots
     where plugin = 'pgoutput' and database = current_database() and slot_name like 'assay\\_%' order by slot_name`,
  )

/** Whether the accounts of this database come from another region. */
export async function isSatellite(pool: Pool): Promise<boolean> {
  const found = await findRow(
    pool,
    `select from pg_subscription where subname = $1
       and subdbid = (select oid from pg_database where datname = current_database())`,
    [subscription],
  )
  return found !== undefined
}

/**
 * Copies the accounts of the home region and follows their changes from now on. `requireKey` throws unless this region
 * has the master key of the home region, with which webhook secrets are sealed.
 */
export async function followHome(
  pool: Pool,
  homeUrl: string,
  region: string,
  requireKey: (homeKeyId: string | undefined) => void,
): Promise<void> {
  await requireNoAccounts(pool)
  requireGrants('this region', await listMissingHere(pool))
  const slot = toSlotName(region)
  // The slot is not created by `create subscription`: on a server that holds both databases, the two would wait for
  // each other.
  await withHome(homeUrl, async (home) => {
    if (!(await isPublished(home))) {
      throw new OperatorMistake(
        'The home region does not publish its accounts yet. Run there: npm run assay -- regions publish.',
      )
    }
    requireGrants('the home region', await listMissingAtHome(home))
    requireKey((await findRecordedKey(home))?.id)
    await home.query(`select pg_create_logical_replication_slot($1, 'pgoutput')`, [slot])
  })
  try {
    // The home region has plans of the same names.
    await pool.query('truncate plans cascade')
    await pool.query(
      `create subscription ${subscription} connection ${pg.escapeLiteral(homeUrl)} publication ${publication}
       with (create_slot = false, slot_name = '${slot}')`,
    )
  } catch (error) {
    await withHome(homeUrl, (home) => home.query('select pg_drop_replication_slot($1)', [slot]))
    throw error
  }
  await forbidChanges(pool)
}

/** Throws with the statements to run if the role of a database lacks rights. */
function requireGrants(where: string, statements: string[]) {
  if (statements.length === 0) return
  const list = statements.map((statement) => `  ${statement};`).join('\n')
  throw new OperatorMistake(
    `The role of the database of ${where} lacks rights. Run there as a superuser:\n${list}\nNothing was changed.`,
  )
}

/** Statements that give the role of the home region what the connection from here needs. */
async function listMissingAtHome(home: Queryable): Promise<string[]> {
  const found = await findRow<{ role: string; replicates: boolean; unreadable: string[] | null }>(
    home,
    `select quote_ident(current_user) as role, rolsuper or rolreplication as replicates,
       (select array_agg(name) from unnest($1::text[]) name where not has_table_privilege(name, 'select')) as unreadable
     from pg_roles where rolname = current_user`,
    [[...sharedTables, 'master_key']],
  )
  if (found === undefined) return []
  return [
    ...(found.replicates ? [] : [`alter role ${found.role} replication`]),
    ...(found.unreadable === null ? [] : [`grant select on ${found.unreadable.join(', ')} to ${found.role}`]),
  ]
}

/** Statements that let the role of this region subscribe. Before PostgreSQL 16 only superusers can. */
async function listMissingHere(pool: Pool): Promise<string[]> {
  const found = await findRow<{ role: string; database: string; subscribes: boolean | null; creates: boolean }>(
    pool,
    `select quote_ident(current_user) as role, quote_ident(current_database()) as database,
       rolsuper or (select pg_has_role(oid, 'member') from pg_roles where rolname = 'pg_create_subscription') as subscribes,
       has_database_privilege(current_database(), 'create') as creates
     from pg_roles where rolname = current_user`,
  )
  if (found === undefined) return []
  const { role, database, subscribes, creates } = found
  return [
    ...(subscribes === null ? [`alter role ${role} superuser`] : []),
    ...(subscribes === false ? [`grant pg_create_subscription to ${role}`] : []),
    ...(creates ? [] : [`grant create on database ${database} to ${role}`]),
  ]
}

export type CopyProgress = {
  /** Tables whose rows have not all been copied yet. */
  tables: string[]
  rows: number
  /** Attempts of PostgreSQL that failed; it tries again, and its log says why. */
  failures: number
}

/** How far the first copy of the accounts is. */
export async function readCopyProgress(pool: Pool): Promise<CopyProgress> {
  const found = await findRow<Omit<CopyProgress, 'tables'>>(
    pool,
    `select coalesce((select sum(tuples_processed) from pg_stat_progress_copy where command = 'COPY FROM'), 0)::float8 as rows,
       coalesce((select sync_error_count + apply_error_count from pg_stat_subscription_stats where subname = $1), 0)::float8
         as failures`,
    [subscription],
  )
  return { tables: await listIncomplete(pool), rows: found?.rows ?? 0, failures: found?.failures ?? 0 }
}

/** Tables whose rows have not all been copied yet. */
export async function listIncomplete(pool: Pool): Promise<string[]> {
  const rows = await listRows<{ name: string }>(
    pool,
    `select srrelid::regclass::text as name from pg_subscription_rel join pg_subscription on oid = srsubid
     where subname = $1 and srsubstate <> 'r' order by 1`,
    [subscription],
  )
  return rows.map(({ name }) => name)
}

/** Stops following the home region. The accounts that were copied stay, and belong to this region from now on. */
export async function leaveHome(pool: Pool, homeUrl: string, region: string): Promise<void> {
  await pool.query(`alter subscription ${subscription} disable`)
  await pool.query(`alter subscription ${subscription} set (slot_name = none)`)
  await pool.query(`drop subscription ${subscription}`)
  await pool.query(`drop function ${guard}() cascade`)
  await withHome(homeUrl, (home) =>
    home.query(
      `select pg_terminate_backend(active_pid, 5000), pg_drop_replication_slot(slot_name)
       from pg_replication_slots where slot_name = $1`,
      [toSlotName(region)],
    ),
  )
}

async function requireNoAccounts(pool: Pool) {
  if ((await findRow(pool, 'select from accounts limit 1')) === undefined) return
  throw new OperatorMistake(
    'There are accounts in this region already. Follow the home region from a new database, before its first start.',
  )
}

/**
 * Rejects changes of the shared tables in a satellite: they would be overwritten, or conflict with replicated rows. The
 * triggers do not fire for replicated rows.
 */
async function forbidChanges(pool: Pool) {
  await pool.query(
    `create or replace function ${guard}() returns trigger language plpgsql as
     $$ begin raise exception '${refusal}' using errcode = '${refusalCode}'; end $$`,
  )
  for (const table of sharedTables) {
    await pool.query(
      `create trigger ${guard} before insert or update or delete on ${table} execute function ${guard}()`,
    )
  }
}

async function withHome<T>(url: string, work: (client: pg.Client) => Promise<T>): Promise<T> {
  let client: pg.Client
  try {
    client = makeConnector({ url }).newClient({ connectionTimeoutMillis: 10_000, query_timeout: 65_000 })
    await client.connect()
  } catch (error) {
    throw new OperatorMistake(`The home region cannot be reached: ${(error as Error).message}.`, { cause: error })
  }
  return work(client).finally(() => client.end())
}

/** Whether a region that follows another is connected with it, and when it last heard of it, by its own database. */
type HomeContact = { isCutOff: boolean; heardAt: Date }

/**
 * Reads whether the home region is heard, and remembers when it was. While it is connected, PostgreSQL asks an idle home
 * region after half of `wal_receiver_timeout`, which is a minute, and waits for the other half. Without a connection,
 * some seconds are left to its worker to start again. Undefined in a region that follows no other.
 */
export const readHomeContact = (pool: Pool): Promise<HomeContact | undefined> =>
  findRow<HomeContact>(pool, readContact, [subscription])

const readContact = `
with heard as (
  select max(last_msg_receipt_time) as at from pg_stat_subscription
  -- A worker that has just started has the time of its start, though it may not reach the home region at all.
  where subname = $1 and relid is null and pid is not null and received_lsn is not null
),
remembered as (
  insert into home_contact (heard_at) select at from heard where at is not null
  on conflict (single) do update set heard_at = excluded.heard_at
  where home_contact.heard_at < excluded.heard_at or home_contact.heard_at > now() + interval '1 minute'
),
contact as (
  select coalesce((select at from heard), heard_at) as "heardAt", (select at from heard) is not null as is_connected
  from home_contact
)
select "heardAt",
  extract(epoch from now() - "heardAt") > case when is_connected then 0.75 * nullif(timeout, 0) else 10 end is true
    as "isCutOff"
from contact cross join lateral (
  select extract(epoch from current_setting('wal_receiver_timeout')::interval) as timeout
) as setting
`

/** Begins to count, when a region begins to follow another. */
export const startHomeContact = (pool: Pool) =>
  changeRows(
    pool,
    'insert into home_contact (heard_at) values (now()) on conflict (single) do update set heard_at = now()',
  )

/** Ends counting: `readHomeContact` then finds nothing. */
export const endHomeContact = (pool: Pool) => changeRows(pool, 'delete from home_contact')

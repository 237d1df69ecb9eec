import pg, { type Pool } from 'pg'
import { OperatorMistake } from '../../domain/problem.ts'
import { publicationName, sharedTables, toSlotName } from './home-region.ts'

const subscription = 'assay_home'
const guard = 'assay_made_in_home_region'
const refusal = 'Accounts, keys and plans are made in the home region. Do it there: it arrives here within seconds.'

/** Whether the accounts of this database come from another region. */
export async function isSatellite(pool: Pool): Promise<boolean> {
  const { rowCount } = await pool.query(
    `select from pg_subscription where subname = $1
       and subdbid = (select oid from pg_database where datname = current_database())`,
    [subscription],
  )
  return rowCount === 1
}

/** Takes over the accounts of the home region, and what changes there from now on. */
export async function followHome(pool: Pool, homeUrl: string, region: string): Promise<void> {
  await requireNoAccounts(pool)
  const slot = toSlotName(region)
  // Made apart from the subscription: in one server that holds both databases the two would wait for each other.
  await withHome(homeUrl, async (home) => {
    const { rowCount } = await home.query('select from pg_publication where pubname = $1', [publicationName])
    if (rowCount === 0) {
      throw new OperatorMistake(
        'The home region lets nobody follow it yet. Run there: npm run assay -- regions publish.',
      )
    }
    await home.query(`select pg_create_logical_replication_slot($1, 'pgoutput')`, [slot])
  })
  try {
    // The home region has plans of the same names.
    await pool.query('truncate plans cascade')
    await pool.query(
      `create subscription ${subscription} connection ${pg.escapeLiteral(homeUrl)} publication ${publicationName}
       with (create_slot = false, slot_name = '${slot}')`,
    )
  } catch (error) {
    await withHome(homeUrl, (home) => home.query('select pg_drop_replication_slot($1)', [slot]))
    throw error
  }
  await forbidChanges(pool)
}

/** Tables whose rows have not all come yet. */
export async function listIncomplete(pool: Pool): Promise<string[]> {
  const { rows } = await pool.query<{ name: string }>(
    `select srrelid::regclass::text as name from pg_subscription_rel join pg_subscription on oid = srsubid
     where subname = $1 and srsubstate <> 'r' order by 1`,
    [subscription],
  )
  return rows.map(({ name }) => name)
}

/** Makes the region a home of its own. What has come stays. */
export async function leaveHome(pool: Pool, homeUrl: string, region: string): Promise<void> {
  await pool.query(`alter subscription ${subscription} disable`)
  await pool.query(`alter subscription ${subscription} set (slot_name = none)`)
  await pool.query(`drop subscription ${subscription}`)
  await allowChanges(pool)
  await withHome(homeUrl, (home) =>
    home.query(
      `select pg_terminate_backend(active_pid, 5000), pg_drop_replication_slot(slot_name)
       from pg_replication_slots where slot_name = $1`,
      [toSlotName(region)],
    ),
  )
}

async function requireNoAccounts(pool: Pool) {
  const { rowCount } = await pool.query('select from accounts limit 1')
  if (rowCount === 0) return
  throw new OperatorMistake(
    'There are accounts in this region already. Follow the home region from a new database, before its first start.',
  )
}

/** What is changed here would be lost or refuse what comes from home. The rule does not hold for what comes. */
async function forbidChanges(pool: Pool) {
  await pool.query(
    `create or replace function ${guard}() returns trigger language plpgsql as
     $$ begin raise exception '${refusal}'; end $$`,
  )
  for (const table of sharedTables) {
    await pool.query(
      `create trigger ${guard} before insert or update or delete on ${table} execute function ${guard}()`,
    )
  }
}

async function allowChanges(pool: Pool) {
  await pool.query(`drop function ${guard}() cascade`)
}

async function withHome<T>(url: string, work: (client: pg.Client) => Promise<T>): Promise<T> {
  const client = new pg.Client({ connectionString: url, connectionTimeoutMillis: 10_000, statement_timeout: 30_000 })
  client.on('error', () => {})
  try {
    await client.connect()
  } catch (error) {
    throw new OperatorMistake(`The home region cannot be reached: ${(error as Error).message}.`, { cause: error })
  }
  return work(client).finally(() => client.end())
}

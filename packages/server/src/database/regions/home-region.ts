import type { Pool } from 'pg'
import { OperatorMistake } from '../../domain/problem.ts'

export const publicationName = 'assay_accounts'
/** What follows a home region. Credits, rate windows, jobs, content and results stay where they are. */
export const sharedTables = ['plans', 'accounts', 'api_keys']

export const toSlotName = (region: string) => `assay_${region.replaceAll('-', '_')}`

/** Lets other regions follow the accounts of this one. Done twice it changes nothing. */
export async function publishAccounts(pool: Pool): Promise<void> {
  const { rows } = await pool.query<{ wal_level: string }>('show wal_level')
  if (rows[0]?.wal_level !== 'logical') {
    throw new OperatorMistake(
      'This PostgreSQL does not keep what others need to follow it. Set wal_level = logical there, restart it, and try again.',
    )
  }
  const { rowCount } = await pool.query('select from pg_publication where pubname = $1', [publicationName])
  if (rowCount === 0) await pool.query(`create publication ${publicationName} for table ${sharedTables.join(', ')}`)
}

export type Follower = { slot: string; active: boolean; behindBytes: number }

/** Empty where nobody was let in. */
export async function listFollowers(pool: Pool): Promise<Follower[]> {
  const { rows } = await pool.query<Follower>(
    `select slot_name as slot, active,
       coalesce(pg_wal_lsn_diff(pg_current_wal_lsn(), confirmed_flush_lsn), 0)::float8 as "behindBytes"
     from pg_replication_slots
     where plugin = 'pgoutput' and database = current_database() and slot_name like 'assay\\_%' order by slot_name`,
  )
  return rows
}

export async function isPublished(pool: Pool): Promise<boolean> {
  const { rowCount } = await pool.query('select from pg_publication where pubname = $1', [publicationName])
  return rowCount === 1
}

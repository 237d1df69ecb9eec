import type { Pool, QueryConfig, QueryResult, QueryResultRow } from 'pg'
import { FateUnknown, isFateUnknown, isOutage } from './outage.ts'

/**
 * Runs statements on a queue in a transaction that may not read whole tables. A plan is made once and kept, and a queue
 * is mostly empty when it is made: then PostgreSQL finds it cheapest to read all of it, and would still do so when
 * 100,000 are waiting.
 */
export async function runIndexed<Row extends QueryResultRow>(
  pool: Pool,
  statements: [...QueryConfig[], QueryConfig],
  options: { settings?: readonly string[]; lock?: number } = {},
): Promise<QueryResult<Row>> {
  const client = await pool.connect()
  let broken: Error | undefined
  let isCommitting = false
  try {
    const opening = ['begin', ...always, ...(options.settings ?? []).map((setting) => `set local ${setting}`)]
    if (options.lock !== undefined) opening.push(`select pg_advisory_xact_lock(${options.lock})`)
    await client.query(opening.join(';'))
    let result: QueryResult<Row> | undefined
    for (const statement of statements) result = await client.query<Row>(statement)
    isCommitting = true
    await client.query('commit')
    return result as QueryResult<Row>
  } catch (error) {
    // On a connection that does not answer a rollback would wait as long as the statement has.
    if (isOutage(error)) broken = error as Error
    else {
      await client.query('rollback').catch((reason: Error) => {
        broken = reason
      })
    }
    if (isCommitting && isFateUnknown(error)) throw new FateUnknown('A commit was not answered', { cause: error })
    throw error
  } finally {
    client.release(broken)
  }
}

const always = [
  'set local enable_seqscan = off',
  'set local jit = off',
  // Whoever stops in the middle must not keep its locks.
  "set local idle_in_transaction_session_timeout = '10s'",
]

/** For leases: one that is lost in a power cut can settle nothing, and its work is done again. */
export const lazily = ['synchronous_commit = off'] as const

import type { Pool, PoolClient, QueryResult, QueryResultRow } from 'pg'
import { CommitUnknown, isOutage, mayHaveCommitted } from './database-error.ts'
import { type Statement, toQuery } from './query.ts'

type Options = {
  /** Isolation level and access mode, added to `begin`. */
  mode?: string
  /** Settings for this transaction alone. */
  settings?: readonly string[]
  /** Advisory lock that is held until the transaction ends. */
  lock?: number
  /** `work` uses COPY. After an error in the middle of one, the connection cannot be rolled back; it is closed. */
  copies?: boolean
}

/**
 * Setting for leases: their commits do not wait for the disk. A lease that is lost in a power cut can complete nothing,
 * and another worker runs its work again.
 */
export const withoutDiskWait = ['synchronous_commit = off'] as const

/** Commits what `work` did, or rolls it back when `work` throws. Throws `CommitUnknown` when the commit is not answered. */
export async function inTransaction<Result>(
  pool: Pool,
  work: (client: PoolClient) => Promise<Result>,
  options: Options = {},
): Promise<Result> {
  const client = await pool.connect()
  let isCommitting = false
  let isBroken = false
  try {
    await client.query(toOpening(options))
    const result = await work(client)
    isCommitting = true
    await client.query('commit')
    return result
  } catch (error) {
    // On a connection that does not answer, a rollback would wait as long as the statement did.
    isBroken = isOutage(error) || options.copies === true || !(await rollBack(client))
    throw isCommitting ? toCommitError(error) : error
  } finally {
    client.release(isBroken)
  }
}

/**
 * Runs one statement that changes rows. It is a transaction by itself: one round trip instead of three. The timeout is the
 * pool's unless it is given here.
 */
export async function runStatement<Row extends QueryResultRow>(
  pool: Pool,
  statement: Statement,
  values: unknown[] = [],
  timeoutMs?: number,
): Promise<QueryResult<Row>> {
  const client = await pool.connect()
  let isBroken = false
  try {
    // The driver reads query_timeout from a query; its types do not declare it.
    const query = { ...toQuery(statement, values), ...(timeoutMs === undefined ? {} : { query_timeout: timeoutMs }) }
    return await client.query<Row>(query)
  } catch (error) {
    isBroken = isOutage(error)
    throw toCommitError(error)
  } finally {
    client.release(isBroken)
  }
}

function toOpening({ mode = '', settings = [], lock }: Options): string {
  // A process that stops in the middle of a transaction must not keep its locks.
  const all = ["idle_in_transaction_session_timeout = '10s'", ...settings].map((setting) => `set local ${setting}`)
  const locking = lock === undefined ? [] : [`select pg_advisory_xact_lock(${lock})`]
  return [`begin ${mode}`, ...all, ...locking].join(';')
}

const toCommitError = (error: unknown) =>
  mayHaveCommitted(error) ? new CommitUnknown('A commit was not answered', { cause: error }) : error

const rollBack = (client: PoolClient): Promise<boolean> =>
  client.query('rollback').then(
    () => true,
    () => false,
  )

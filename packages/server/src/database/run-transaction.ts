import type { Pool, QueryConfig, QueryResult, QueryResultRow } from 'pg'
import { CommitUnknown, isOutage, mayHaveCommitted } from './database-error.ts'

type Options = {
  settings?: readonly string[]
  lock?: number
  /** An answer that does not come is not waited for longer; else it is as long as the pool says. */
  answerMs?: number
}

/** Statements in one transaction. One that is alone is a transaction by itself, and the server is asked once, not thrice. */
export async function runTransaction<Row extends QueryResultRow>(
  pool: Pool,
  statements: [...QueryConfig[], QueryConfig],
  { settings = [], lock, answerMs }: Options = {},
): Promise<QueryResult<Row>> {
  const isAlone = statements.length === 1 && settings.length === 0 && lock === undefined
  const client = await pool.connect()
  let broken: Error | undefined
  let isCommitting = isAlone
  try {
    if (!isAlone) await client.query(toOpening(settings, lock))
    let result: QueryResult<Row> | undefined
    for (const statement of statements) {
      // The driver takes this one, its types do not know it.
      const bounded = { ...statement, ...(answerMs !== undefined && { query_timeout: answerMs }) }
      result = await client.query<Row>(bounded)
    }
    isCommitting = true
    if (!isAlone) await client.query('commit')
    return result as QueryResult<Row>
  } catch (error) {
    // On a connection that does not answer a rollback would wait as long as the statement has.
    if (isOutage(error)) broken = error as Error
    else if (!isAlone) {
      await client.query('rollback').catch((reason: Error) => {
        broken = reason
      })
    }
    if (isCommitting && mayHaveCommitted(error)) throw new CommitUnknown('A commit was not answered', { cause: error })
    throw error
  } finally {
    client.release(broken)
  }
}

function toOpening(settings: readonly string[], lock: number | undefined): string {
  // Whoever stops in the middle must not keep its locks.
  const all = ["idle_in_transaction_session_timeout = '10s'", ...settings].map((setting) => `set local ${setting}`)
  const locking = lock === undefined ? [] : [`select pg_advisory_xact_lock(${lock})`]
  return ['begin', ...all, ...locking].join(';')
}

/** For leases: one that is lost in a power cut can complete nothing, and its work is done again. */
export const lazily = ['synchronous_commit = off'] as const

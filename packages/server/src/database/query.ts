import { AsyncLocalStorage } from 'node:async_hooks'
import type { Pool, PoolClient, QueryConfig, QueryResult, QueryResultRow, Submittable } from 'pg'
import { CommitUnknown, isOutage, mayHaveCommitted } from './database-error.ts'

/** A pool, or the client of a transaction. */
export type Queryable = Pick<Pool, 'query'> | Pick<PoolClient, 'query'>

/**
 * Column lists give each column the name of its field (`created_at as "createdAt"`), so that a row is the value the
 * port promises. A `to*` function exists only where a field is nested or derived.
 */
export async function listRows<Row extends QueryResultRow>(
  db: Queryable,
  statement: string,
  values: unknown[] = [],
): Promise<Row[]> {
  return (await join(db).query<Row>(toQuery(statement, values))).rows
}

export async function findRow<Row extends QueryResultRow>(
  db: Queryable,
  statement: string,
  values: unknown[] = [],
): Promise<Row | undefined> {
  return (await listRows<Row>(db, statement, values))[0]
}

/** Returns how many rows the statement inserted, updated, deleted or selected. */
export async function changeRows(db: Queryable, statement: string, values: unknown[] = []): Promise<number> {
  return (await join(db).query(toQuery(statement, values))).rowCount ?? 0
}

const join = (db: Queryable): Queryable => findUnit(db)?.client ?? db

/**
 * Repeats a statement that handles at most `pieceSize` rows until it finds fewer, and returns how many it handled. A
 * single long statement would hold up vacuum, and its time limit could undo all of its work.
 */
export async function runInPieces(pieceSize: number, runPiece: () => Promise<number>): Promise<number> {
  let total = 0
  for (;;) {
    const count = await runPiece()
    total += count
    if (count < pieceSize) return total
  }
}

/**
 * A statement that begins with `-- name: NAME` is prepared once for each connection. Statements that run for every
 * request or scan have a name.
 */
function toQuery(statement: string, values: unknown[]): QueryConfig {
  const [, name] = /^\s*-- name: (\S+)/.exec(statement) ?? []
  return { text: statement, values, ...(name === undefined ? {} : { name }) }
}

/** SQL for the time `ms` milliseconds ago, by the clock of the database. Nodes pass lengths, never their own time. */
export const toTimeAgo = (ms: string) => `now() - ${ms}::float8 * interval '1 millisecond'`

/**
 * SQL that is false for rows that were created in the future, from before the clock of the database was set back. A
 * minute is left for steps of its clock that are not worth a new sign-in.
 */
export const hasBegun = (table: string) => `${table}.created_at < now() + interval '1 minute'`

/** The pattern of `like` that finds a text anywhere, with its wildcards taken literally. */
export const toPattern = (text: string | undefined): string | undefined =>
  text === undefined ? undefined : `%${text.replaceAll(/[\\%_]/g, '\\$&')}%`

type KeysetPage = {
  /** Columns of the order, the unique one last. */
  columns: [...string[], string]
  order: 'asc' | 'desc'
  /** Parameter with the unique column of the last row that the client has, null for the first page: `$1::uuid`. */
  cursor: string
  /** Parameter with the number of rows: `$2`. */
  limit: string
}

/**
 * Keyset paging: `condition` keeps the rows that follow the cursor in the order of the page. The other columns of the
 * cursor's row are looked up in `table`; with one column there is nothing to look up, and the row may be gone.
 */
export function toPage(table: string, { columns, order, cursor, limit }: KeysetPage) {
  const key = columns.map((column) => `${table}.${column}`).join(', ')
  const unique = columns.at(-1)
  const start = columns.length === 1 ? cursor : `(select ${key} from ${table} where ${unique} = ${cursor})`
  return {
    condition: `(${cursor} is null or (${key}) ${order === 'asc' ? '>' : '<'} ${start})`,
    ordering: `order by ${columns.map((column) => `${table}.${column} ${order}`).join(', ')} limit ${limit}`,
  }
}

/**
 * Lists a page by a statement whose filters and cursor are optional (`$2 is null or ...`), planned for these values. The
 * one plan for all values, which connections use otherwise, reads every row before the cursor too.
 */
export const listPage = <Row extends QueryResultRow>(
  pool: Pool,
  statement: string,
  values: unknown[],
): Promise<Row[]> =>
  inTransaction(pool, (client) => listRows<Row>(client, statement, values), {
    settings: ['plan_cache_mode = force_custom_plan'],
  })

type TransactionOptions = {
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

/**
 * Commits what `work` did, or rolls it back when `work` throws. Throws `CommitUnknown` when the commit is not answered.
 */
export async function inTransaction<Result>(
  pool: Pool,
  work: (client: PoolClient) => Promise<Result>,
  options: TransactionOptions = {},
): Promise<Result> {
  const unit = findUnit(pool)
  if (unit !== undefined) return inSavepoint(unit.client, work, options)
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
 * Commits together what the stores on this pool change while `work` runs, whichever store it is, or nothing when `work`
 * throws. The transaction stays open as long as `work` takes, so `work` waits for nothing but the database.
 */
export async function atomically<Result>(pool: Pool, work: () => Promise<Result>): Promise<Result> {
  if (findUnit(pool) !== undefined) return work()
  const callbacks: (() => void)[] = []
  const result = await inTransaction(pool, async (client) => {
    const unit: Unit = { pool, client, isOpen: true, afterCommit: callbacks }
    try {
      return await units.run(unit, work)
    } finally {
      unit.isOpen = false
    }
  })
  for (const callback of callbacks) callback()
  return result
}

/** A transaction that the statements of all stores on its pool join while its work runs. */
type Unit = {
  pool: Pool
  client: PoolClient
  /** False from the commit on, so that work which outlives the unit gets a connection of its own. */
  isOpen: boolean
  afterCommit: (() => void)[]
}

const units = new AsyncLocalStorage<Unit>()

/** The transaction in which the caller runs, if it uses this pool. */
function findUnit(pool: unknown): { client: PoolClient } | undefined {
  const unit = units.getStore()
  return unit?.isOpen === true && unit.pool === pool ? unit : undefined
}

/** Runs `callback` when the changes of the caller can be seen by others: now, or after the commit of its unit. */
export function afterCommit(callback: () => void) {
  const unit = units.getStore()
  if (unit?.isOpen === true) unit.afterCommit.push(callback)
  else callback()
}

/** Runs a part of a transaction that may fail without ending all of it. */
async function inSavepoint<Result>(
  client: PoolClient,
  work: (client: PoolClient) => Promise<Result>,
  { settings = [], lock }: TransactionOptions,
): Promise<Result> {
  await client.query(toBatch('savepoint part', settings, lock))
  try {
    const result = await work(client)
    await client.query('release part')
    return result
  } catch (error) {
    if (!isOutage(error)) await client.query('rollback to part; release part')
    throw error
  }
}

/** Settings of a transaction whose statements may take as long as a large table needs. */
export const withoutTimeouts = ['statement_timeout = 0', 'idle_in_transaction_session_timeout = 0'] as const
/** The driver's limit on such a statement, in place of that of the pool. */
const longTimeoutMs = 86_400_000

/** Runs a statement of a transaction in which `statement_timeout` is 0. */
export const runLongStatement = <Row extends QueryResultRow>(
  client: PoolClient,
  text: string,
  values: unknown[] = [],
): Promise<QueryResult<Row>> => client.query<Row>(withTimeout({ text, values }, longTimeoutMs))

/**
 * Runs a COPY without the driver's time limit for statements, which is shorter than the copy of a large table. The
 * driver does not see the end of a COPY, so its timer is cleared here.
 */
export async function runCopy<Result>(
  client: PoolClient,
  stream: Submittable,
  work: () => Promise<Result>,
): Promise<Result> {
  const query: Submittable & { query_timeout?: number; callback?(): void } = stream
  query.query_timeout = longTimeoutMs
  client.query(query)
  return work().finally(() => query.callback?.())
}

/** The driver reads query_timeout from a query; its types do not declare it. */
const withTimeout = (query: QueryConfig, timeoutMs: number | undefined): QueryConfig =>
  timeoutMs === undefined ? query : Object.assign(query, { query_timeout: timeoutMs })

/**
 * Runs one statement that changes rows. It is a transaction by itself: one round trip instead of three. It never joins
 * the unit of its caller, because group commits run the statements of many callers. The timeout is the pool's unless it
 * is given here.
 */
export async function runStatement<Row extends QueryResultRow>(
  pool: Pool,
  statement: string,
  values: unknown[] = [],
  timeoutMs?: number,
): Promise<QueryResult<Row>> {
  const client = await pool.connect()
  let isBroken = false
  try {
    return await client.query<Row>(withTimeout(toQuery(statement, values), timeoutMs))
  } catch (error) {
    isBroken = isOutage(error)
    throw toCommitError(error)
  } finally {
    client.release(isBroken)
  }
}

function toOpening({ mode = '', settings = [], lock }: TransactionOptions): string {
  // A process that stops in the middle of a transaction must not keep its locks.
  return toBatch(`begin ${mode}`, ["idle_in_transaction_session_timeout = '10s'", ...settings], lock)
}

function toBatch(opening: string, settings: readonly string[], lock: number | undefined): string {
  const locking = lock === undefined ? [] : [`select pg_advisory_xact_lock(${lock})`]
  return [opening, ...settings.map((setting) => `set local ${setting}`), ...locking].join(';')
}

const toCommitError = (error: unknown) =>
  mayHaveCommitted(error) ? new CommitUnknown('A commit was not answered', { cause: error }) : error

const rollBack = (client: PoolClient): Promise<boolean> =>
  client.query('rollback').then(
    () => true,
    () => false,
  )

import type { Pool, PoolClient, QueryConfig, QueryResultRow } from 'pg'

/** A pool, or the client of a transaction. */
export type Queryable = Pick<Pool, 'query'> | Pick<PoolClient, 'query'>

/**
 * SQL, or SQL with a name: PostgreSQL prepares a named statement once for each connection. Statements that run for every
 * request or scan have a name.
 */
export type Statement = string | { name: string; text: string }

/**
 * Column lists give each column the name of its field (`created_at as "createdAt"`), so that a row is the value the port
 * promises. A `to*` function exists only where a field is nested or derived.
 */
export async function listRows<Row extends QueryResultRow>(
  db: Queryable,
  statement: Statement,
  values: unknown[] = [],
): Promise<Row[]> {
  return (await db.query<Row>(toQuery(statement, values))).rows
}

export async function findRow<Row extends QueryResultRow>(
  db: Queryable,
  statement: Statement,
  values: unknown[] = [],
): Promise<Row | undefined> {
  return (await listRows<Row>(db, statement, values))[0]
}

/** Returns how many rows the statement inserted, updated, deleted or selected. */
export async function changeRows(db: Queryable, statement: Statement, values: unknown[] = []): Promise<number> {
  return (await db.query(toQuery(statement, values))).rowCount ?? 0
}

/**
 * Repeats a statement that handles at most `pieceSize` rows until it finds fewer, and returns how many it handled. A single
 * long statement would hold up vacuum, and its time limit could undo all of its work.
 */
export async function runInPieces(pieceSize: number, runPiece: () => Promise<number>): Promise<number> {
  let total = 0
  for (;;) {
    const count = await runPiece()
    total += count
    if (count < pieceSize) return total
  }
}

export const toQuery = (statement: Statement, values: unknown[]): QueryConfig =>
  typeof statement === 'string' ? { text: statement, values } : { ...statement, values }

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

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

/** Returns how many rows were inserted, updated or deleted. */
export async function changeRows(db: Queryable, statement: Statement, values: unknown[] = []): Promise<number> {
  return (await db.query(toQuery(statement, values))).rowCount ?? 0
}

/** Deletes in pieces: a long statement would hold up vacuum, and its time limit could undo all of its work. */
export async function deleteInPieces(pieceSize: number, deletePiece: () => Promise<number>): Promise<number> {
  let deleted = 0
  for (;;) {
    const count = await deletePiece()
    deleted += count
    if (count < pieceSize) return deleted
  }
}

export const toQuery = (statement: Statement, values: unknown[]): QueryConfig =>
  typeof statement === 'string' ? { text: statement, values } : { ...statement, values }

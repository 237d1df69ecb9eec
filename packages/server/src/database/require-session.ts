import type { Pool } from 'pg'

const tries = 3

/**
 * Prepared statements and settings belong to a connection. A pooler that gives every transaction another one takes them
 * away in the middle of the work, so it is better not to begin. Told by the process that answers: while one of our
 * connections is in a transaction, no other may have its process, and each keeps its own.
 */
export async function requireSession(pool: Pool): Promise<void> {
  const [one, other] = await Promise.all([pool.connect(), pool.connect()])
  const askPid = async (client: typeof one) =>
    (await client.query<{ pid: number }>('select pg_backend_pid() as pid')).rows[0]?.pid
  let unclear = true
  try {
    for (let i = 0; i < tries; i++) {
      const before = await askPid(one)
      await other.query('begin')
      const pids = [await askPid(other), await askPid(one)]
      await other.query('commit')
      if (pids[0] === before || pids[1] !== before) throw new Error(complaint)
    }
    unclear = false
  } finally {
    one.release(unclear)
    other.release(unclear)
  }
}

const complaint = 'a pooler gives every transaction another connection, and Assay needs pool_mode = session'

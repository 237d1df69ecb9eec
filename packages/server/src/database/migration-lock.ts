import { setTimeout as sleep } from 'node:timers/promises'
import type { Pool, PoolClient } from 'pg'
import { OperatorMistake } from '../domain/problem.ts'
import type { Logger } from '../runtime/logger.ts'

const lock = 52_115_006
const pauseMs = 500
const tellEveryMs = 10_000
const deadlineMs = 3_600_000

/**
 * One node works, the others wait and say so. The lock is held by a transaction on a connection of its own, because the
 * work is done in several, and some of it in none. It has seen nothing and changed nothing, so nobody waits for it.
 */
export async function withMigrationLock<T>(deps: { pool: Pool; log: Logger }, work: () => Promise<T>): Promise<T> {
  const client = await deps.pool.connect()
  try {
    await waitForTurn(client, deps.log)
    return await work()
  } finally {
    await client.query('rollback').then(
      () => client.release(),
      (error: Error) => client.release(error),
    )
  }
}

async function waitForTurn(client: PoolClient, log: Logger) {
  const start = performance.now()
  let told = -tellEveryMs
  for (;;) {
    await client.query('begin; set local idle_in_transaction_session_timeout = 0')
    // Without parameters: with them its view of the database stays open, and whoever builds an index waits for that.
    const { rows } = await client.query<{ ours: boolean }>(`select pg_try_advisory_xact_lock(${lock}) as ours`)
    if (rows[0]?.ours === true) return
    await client.query('rollback')
    const waitedMs = performance.now() - start
    if (waitedMs > deadlineMs) {
      throw new OperatorMistake(
        'Another node has been migrating the database for an hour. Look at its log, then start this one again.',
      )
    }
    if (waitedMs - told >= tellEveryMs) {
      told = waitedMs
      log.info({ seconds: Math.round(waitedMs / 1000) }, 'another node migrates the database; waiting for it')
    }
    await sleep(pauseMs)
  }
}

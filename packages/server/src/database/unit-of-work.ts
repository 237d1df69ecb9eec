import { AsyncLocalStorage } from 'node:async_hooks'
import type { Pool, PoolClient } from 'pg'

type Unit = {
  pool: Pool
  client: PoolClient
  /** False from the commit on, so that work which outlives the unit gets a connection of its own. */
  isOpen: boolean
  afterCommit: (() => void)[]
}

const units = new AsyncLocalStorage<Unit>()

/** The transaction in which the caller runs, if it uses this pool. */
export function findUnit(pool: unknown): { client: PoolClient } | undefined {
  const unit = units.getStore()
  return unit?.isOpen === true && unit.pool === pool ? unit : undefined
}

/**
 * Runs `work` such that all statements on `pool` join the transaction of `client`, so that stores that know nothing of
 * each other change rows together or not at all. Returns the result, and the callbacks to run after the commit.
 */
export async function runUnit<Result>(pool: Pool, client: PoolClient, work: () => Promise<Result>) {
  const unit: Unit = { pool, client, isOpen: true, afterCommit: [] }
  try {
    return { result: await units.run(unit, work), afterCommit: unit.afterCommit }
  } finally {
    unit.isOpen = false
  }
}

/** Runs `callback` when the changes of the caller can be seen by others: now, or after the commit of its unit. */
export function afterCommit(callback: () => void) {
  const unit = units.getStore()
  if (unit?.isOpen === true) unit.afterCommit.push(callback)
  else callback()
}

import type { Pool } from 'pg'
import type { IdempotencyStore } from '../domain/ports/admission-gate.ts'
import { runTransaction } from './run-transaction.ts'

/** What the gate keeps of idempotency keys, for others to ask. It is written by `enqueue-statement.ts` alone. */
export function makeIdempotencyStore(deps: { pool: Pool }): IdempotencyStore {
  return {
    async findRepeat(accountId, operation, key) {
      const { rows } = await deps.pool.query<{ scan_id: string; fingerprint: Buffer }>({
        name: 'find-repeat',
        text: findRepeat,
        values: [accountId, operation, key],
      })
      const [row] = rows
      return row === undefined ? undefined : { scanId: row.scan_id, fingerprint: row.fingerprint.toString('hex') }
    },
    async deleteIdempotency(before) {
      let deleted = 0
      for (;;) {
        const { rowCount } = await runTransaction(deps.pool, [{ text: deleteOld, values: [before] }])
        deleted += rowCount ?? 0
        if ((rowCount ?? 0) < deleteAtOnce) return deleted
      }
    },
  }
}

const findRepeat = `
select scan_id, fingerprint from idempotency_keys where account_id = $1 and operation = $2 and key = $3
`

const deleteAtOnce = 5000

/** Locked ones are in use just now, and will be old the next time as well. */
const deleteOld = `
delete from idempotency_keys where ctid = any(array(
  select ctid from idempotency_keys where created_at < $1 limit ${deleteAtOnce} for update skip locked
))
`

import { randomUUID } from 'node:crypto'
import { makeDeliveryStore } from '../../src/database/delivery-store.ts'
import type { DeliveryState } from '../../src/domain/ports/delivery-store.ts'
import { openTestStores } from '../support/test-stores.ts'

/** The store of deliveries on a database of its own, with an account, and a way to put deliveries in without scans. */
export async function openDeliveries() {
  const stores = await openTestStores()
  const { pool } = stores.database
  const account = await stores.register()
  const store = makeDeliveryStore({ pool, sealer: stores.sealer })

  return {
    stores,
    store,
    account,
    async add(url: string, body = '{}', dueInMs = 0) {
      const id = randomUUID()
      await pool.query(
        `insert into deliveries (id, scan_id, account_id, url, host, body, next_at)
         values ($1, $2, $3, $4, $5, $6, now() + $7 * interval '1 millisecond')`,
        [id, randomUUID(), account.id, url, new URL(url).host, body, dueInMs],
      )
      return id
    },
    async countIn(state: DeliveryState) {
      return (await store.listDeliveries({ state, limit: 1000 })).length
    },
    async endLeases() {
      await pool.query(`update deliveries set next_at = now() where lease_token is not null`)
    },
    async clear() {
      await pool.query('truncate deliveries, delivery_attempts, webhook_endpoints')
    },
    close: stores.close,
  }
}

export type TestDeliveries = Awaited<ReturnType<typeof openDeliveries>>

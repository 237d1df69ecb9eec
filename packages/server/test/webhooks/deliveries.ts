import { randomUUID } from 'node:crypto'
import { makeDeliveryStore } from '../../src/database/delivery-store.ts'
import type { DeliveryState } from '../../src/domain/ports/delivery-store.ts'
import { openTestOffice } from '../support/test-office.ts'

/** The store of deliveries on a database of its own, with an account, and a way to put deliveries in without scans. */
export async function openDeliveries() {
  const office = await openTestOffice()
  const { pool } = office.database
  const account = await office.register()
  const store = makeDeliveryStore(office.database)

  return {
    office,
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
    async clear() {
      await pool.query('truncate deliveries, delivery_attempts, webhook_endpoints')
    },
    close: office.close,
  }
}

export type TestDeliveries = Awaited<ReturnType<typeof openDeliveries>>

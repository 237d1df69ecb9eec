import assert from 'node:assert/strict'
import type { ScanResult } from '@assay/contract'
import { eicarSignal } from './archives.ts'
import type { Load, Order } from './chaos-load.ts'
import { makeCaller } from './submitting.ts'

/** Access to the first account of an installation. */
type Balances = { url: string; apiKey: string; operate(...args: string[]): Promise<unknown> }

/** Waits until every job that was charged, acknowledged or not, is complete. */
export async function completeAll(
  balances: Balances,
  load: Pick<Load, 'orders' | 'submit'>,
): Promise<Map<string, ScanResult>> {
  for (const order of load.orders) if (order.idempotencyKey !== undefined) await load.submit(order)
  const caller = makeCaller(balances.url, balances.apiKey)
  const ids = new Set((await listLedger(balances)).filter(({ kind }) => kind === 'debit').map((row) => row.scan_id))
  for (const { id } of load.orders) assert(id === undefined || ids.has(id), `${id} was acknowledged and not charged`)
  const results = new Map<string, ScanResult>()
  for (const id of ids) results.set(id, await caller.complete('malware', id))
  return results
}

/** `tolerated` lists the error signals that a job may end with, besides failures of our own and limits. */
export function checkVerdicts(orders: Order[], results: Map<string, ScanResult>, tolerated: string[] = []) {
  const byName = new Map(orders.map((order) => [order.name, order]))
  const accepted = new Map<string, number>()
  for (const result of results.values()) {
    const order = byName.get(String(result.content_name))
    assert(order !== undefined)
    accepted.set(order.name, (accepted.get(order.name) ?? 0) + 1)
    const about = `${order.name}: ${JSON.stringify(result)}`
    if (result.status === 'error') {
      const mayBe = ['Error:EngineFailed', 'Error:ScanLimitExceeded', ...tolerated]
      assert(mayBe.includes(String(result.signals)), about)
    } else {
      assert.equal(result.status, order.isVirus ? 'threat' : 'clean', about)
      assert.deepEqual(result.signals, order.isVirus ? [eicarSignal] : [], about)
      assert.equal(result.content_length, order.content.length, about)
    }
  }
  for (const { name, idempotencyKey, tries, id } of orders) {
    const count = accepted.get(name) ?? 0
    if (idempotencyKey !== undefined) assert.equal(count, 1, `${name}: one Idempotency-Key, one charge`)
    else assert(count <= tries && (id === undefined || count === 1), `${name} was charged ${count} times`)
  }
  const statuses = new Set([...results.values()].map(({ status }) => status))
  assert(statuses.has('clean') && statuses.has('threat'))
}

const isFailed = ({ signals }: ScanResult) => String(signals) === 'Error:EngineFailed'
export const countFailed = (results: Map<string, ScanResult>) => [...results.values()].filter(isFailed).length

/** Checks for one debit per job, one refund per job that could not be done, and the right sum. */
export async function checkLedger(balances: Balances, results: Map<string, ScanResult>) {
  const ledger = await listLedger(balances)
  const scansOf = (kind: string) => ledger.filter((row) => row.kind === kind).map((row) => row.scan_id)
  assert.deepEqual(scansOf('debit').sort(), [...results.keys()].sort())
  const failed = [...results.values()].filter(isFailed).map(({ id }) => id)
  assert.deepEqual(scansOf('refund').sort(), failed.sort())
  const sum = ledger.reduce((total, { amount }) => total + amount, 0)
  const opening = ledger.find(({ kind }) => kind === 'opening')?.amount ?? 0
  const spent = await makeCaller(balances.url, balances.apiKey).readSpent()
  assert.deepEqual([spent, sum], [results.size - failed.length, opening - spent], 'the ledger sums to the balance')
}

async function listLedger({ operate }: Balances) {
  const accounts = (await operate('accounts', 'list')) as { id: string; name: string }[]
  const first = accounts.find(({ name }) => name === 'first account')
  const ledger = await operate('credits', 'ledger', '--account', first?.id ?? '', '--limit', '100000')
  return ledger as { kind: string; scan_id: string; amount: number }[]
}

import assert from 'node:assert/strict'
import { readdirSync, utimesSync } from 'node:fs'
import { join } from 'node:path'
import type { ScanResult } from '@assay/contract'
import { eicarSignal } from './archives.ts'
import type { Installation } from './chaos-installation.ts'
import type { Load, Order } from './chaos-load.ts'
import { grepFiles, listContentFiles } from './content-files.ts'
import { describeProcesses } from './processes.ts'
import { type Receiver, verifyDelivery } from './receiver.ts'
import { type Kind, listKept, makeCaller } from './submitting.ts'
import { waitUntil } from './wait-until.ts'

/** Access to the first account of an installation. */
type Balances = { url: string; apiKey: string; operate(...args: string[]): Promise<unknown> }

/** Waits until every job that was charged, acknowledged or not, is complete. */
export async function completeAll(
  balances: Balances,
  load: Pick<Load, 'orders' | 'submit'>,
): Promise<Map<string, ScanResult>> {
  const repeatable = load.orders.filter(({ idempotencyKey }) => idempotencyKey !== undefined)
  await forEachInParallel(repeatable, load.submit)
  const caller = makeCaller(balances.url, balances.apiKey)
  const ids = new Set((await listLedger(balances)).filter(({ kind }) => kind === 'debit').map((row) => row.scan_id))
  for (const { id } of load.orders) assert(id === undefined || ids.has(id), `${id} was acknowledged and not charged`)
  const kinds = new Map(load.orders.map(({ id, kind }) => [id, kind]))
  const results = new Map<string, ScanResult>()
  await forEachInParallel([...ids], async (id) => {
    results.set(id, await caller.complete(kinds.get(id) ?? (await findKind(caller, id)), id))
  })
  return results
}

async function forEachInParallel<T>(items: T[], work: (item: T) => Promise<unknown>) {
  const queue = [...items]
  const run = async () => {
    for (let item = queue.pop(); item !== undefined; item = queue.pop()) await work(item)
  }
  await Promise.all(Array.from({ length: 8 }, run))
}

/** The kind of a scan whose acknowledgement did not arrive: the other kind has no such id. */
const findKind = async (caller: ReturnType<typeof makeCaller>, id: string): Promise<Kind> =>
  (await caller.fetchResult('malware', id)).status === 200 ? 'malware' : 'nsfw/images'

/**
 * `tolerated` lists the error signals that a job may end with, besides failures of our own. `pictureSignals` are those of
 * the picture of the load.
 */
export function checkVerdicts(
  orders: Order[],
  results: Map<string, ScanResult>,
  { tolerated = [], pictureSignals = [] }: { tolerated?: string[]; pictureSignals?: string[] } = {},
) {
  const byName = new Map(orders.map((order) => [order.name, order]))
  const accepted = new Map<string, number>()
  for (const result of results.values()) {
    const order = byName.get(String(result.content_name))
    assert(order !== undefined)
    accepted.set(order.name, (accepted.get(order.name) ?? 0) + 1)
    const about = `${order.name}: ${JSON.stringify(result)}`
    if (result.status === 'error') {
      assert(['Error:EngineFailed', ...tolerated].includes(String(result.signals)), about)
    } else {
      const signals = order.kind === 'malware' ? (order.isVirus ? [eicarSignal] : []) : pictureSignals
      assert.equal(result.status, signals.length > 0 ? 'threat' : 'clean', about)
      assert.deepEqual(result.signals, signals, about)
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

/** Checks that each job with a callback was told of, signed and truly, and never in two ways. */
export async function checkDeliveries(
  receivers: Receiver[],
  secret: string,
  orders: Order[],
  results: Map<string, ScanResult>,
) {
  const called = new Set(orders.filter(({ callbackUrl }) => callbackUrl !== undefined).map(({ name }) => name))
  const expected = [...results.values()].filter(({ content_name }) => called.has(String(content_name)))
  const listReceived = () => receivers.flatMap(({ received }) => received)
  const listTold = () => new Set(listReceived().map(({ body }) => JSON.parse(body.toString()).id as string))
  await waitUntil(
    'every callback',
    () => {
      const told = listTold()
      return expected.every(({ id }) => told.has(id))
    },
    90_000,
  )
  const webhookIds = new Map<string, string>()
  for (const delivery of listReceived()) {
    const result = verifyDelivery(delivery, secret)
    assert.deepEqual(result, results.get(result.id))
    assert.equal(delivery.path, `/${result.content_name}`)
    const webhookId = String(delivery.headers['webhook-id'])
    const body = delivery.body.toString()
    assert.equal(webhookIds.get(webhookId) ?? body, body, 'the same bytes every time')
    webhookIds.set(webhookId, body)
  }
  assert.equal(webhookIds.size, expected.length, 'one delivery a job')
}

/**
 * Stops the installation and checks that neither processes nor files are left. Content of a job that a crash removed is
 * an orphan for 15 minutes, encrypted; returns how many of them the sweeper removed.
 */
export async function checkLeftovers(installation: Installation, marker: string): Promise<number> {
  const { dataDir, temporaryDir } = installation
  await installation.stop()
  await expectNoProcesses(installation)
  assert.deepEqual(grepFiles(dataDir, Buffer.from(marker)), [], 'nothing is there in clear')
  assert(!installation.log().includes(marker), 'nor in the log')
  const orphans = listKept(dataDir)
  const longAgo = Date.now() / 1000 - 16 * 60
  for (const name of orphans) utimesSync(join(dataDir, 'jobs', name), longAgo, longAgo)
  await installation.start()
  await waitUntil('the sweeper to remove the orphans', () => listKept(dataDir).length === 0)
  await installation.stop()
  assert.deepEqual(listContentFiles({ dataDir }), [])
  assert.deepEqual(readdirSync(temporaryDir), [])
  await expectNoProcesses(installation)
  return orphans.length
}

/** A process that is killed with its parent is still listed for a moment; one that is left behind, for ever. */
async function expectNoProcesses({ listProcesses }: Installation) {
  await waitUntil('all processes to end', () => listProcesses().length === 0).catch((error: Error) => {
    throw new Error(describeProcesses(listProcesses()).join('\n'), { cause: error })
  })
}

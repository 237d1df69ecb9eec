import assert from 'node:assert/strict'
import { execFile } from 'node:child_process'
import { createHmac } from 'node:crypto'
import { after, before, describe, test } from 'node:test'
import { fileURLToPath } from 'node:url'
import type { Run } from '../../../../acceptance/support/run-program.ts'
import { runShared } from '../../../../acceptance/support/shared-commands.ts'
import { makeDeliver } from '../../src/domain/webhooks/deliver.ts'
import { systemClock } from '../../src/runtime/clock.ts'
import { testMasterKeyText } from '../support/test-sealer.ts'
import { openDeliveries, type TestDeliveries } from './deliveries.ts'
import { newLoopbackSender, openReceiver } from './receivers.ts'

const program = fileURLToPath(new URL('../../src/main.ts', import.meta.url))
const nobody = '00000000-0000-4000-8000-000000000000'
const fiveDaysMs = 5 * 24 * 3_600_000

let deliveries: TestDeliveries
let settings: NodeJS.ProcessEnv
before(async () => {
  deliveries = await openDeliveries()
  settings = {
    ASSAY_DATABASE_URL: deliveries.stores.database.url,
    ASSAY_MASTER_KEY: testMasterKeyText,
    ASSAY_OUTBOUND_ALLOW: '127.0.0.0/8',
  }
})
after(() => deliveries.close())

/** A command beside the database of this test, allowed to call receivers on this machine. */
function run(args: string[], changed: NodeJS.ProcessEnv = {}): Promise<Run> {
  const env = { ...process.env, ...settings, ...changed }
  return runShared(program, { args: ['webhooks', ...args], env }) ?? assert.fail('another command runs')
}

/** The same by the program itself. */
function runProgram(...args: string[]): Promise<Run> {
  const env = { ...process.env, ...settings }
  return new Promise((resolve) => {
    execFile(process.execPath, [program, 'webhooks', ...args], { env }, (error, out, err) => {
      resolve({ code: error === null ? 0 : Number(error.code), out, err })
    })
  })
}

async function runJson(...args: string[]) {
  const { code, out, err } = await run([...args, '--json'])
  assert.equal(code, 0, err)
  return JSON.parse(out)
}

/** Attempts all that is due, once. */
async function attemptAll(options: { retryMs: number[]; pauseAfterMs?: number }) {
  const { store } = deliveries
  const deliver = makeDeliver({ sender: newLoopbackSender(), store, clock: systemClock, ...options })
  const claimed = await store.claim({ limit: 100, perHost: 100, leaseMs: 30_000 })
  await Promise.all(claimed.map(deliver))
}

describe('webhooks test', () => {
  test('sends a sample that is signed with the secret of the account, and shows what came of it', async () => {
    const receiver = await openReceiver(() => ({ status: 200, body: 'seen \x1b[31mred\x07' }))
    const { account } = deliveries
    const { code, out } = await run(['test', receiver.url, '--account', account.id])
    const json = await runJson('test', receiver.url)
    await receiver.close()
    assert.equal(code, 0)
    assert.match(out, /^status +200\nduration +\d+ ms\nanswer +seen \[31mred\n/)
    assert.match(out, /\nX-Api-Signature: [0-9a-f]{64}\n/)
    assert.equal(receiver.received.length, 2)
    for (const { headers, body } of receiver.received) {
      const expected = createHmac('sha256', account.webhookSecret).update(body).digest('hex')
      assert.equal(headers['x-api-signature'], expected)
    }
    assert.deepEqual([json.status, json.answer], [200, 'seen \x1b[31mred\x07'])
    assert.equal(json.headers['webhook-id'], receiver.received[1]?.headers['webhook-id'])
    assert.equal(json.body, receiver.received[1]?.body.toString())
  })

  test('ends with 1 when the receiver does not take it', async () => {
    const receiver = await openReceiver(() => ({ status: 302, headers: { location: '/hook' } }))
    const refused = await runProgram('test', receiver.url, '--json')
    await receiver.close()
    const silent = await run(['test', receiver.url, '--json'])
    assert.deepEqual([refused.code, JSON.parse(refused.out).status, receiver.received.length], [1, 302, 1])
    assert.deepEqual([silent.code, JSON.parse(silent.out).status], [1, null])
    assert.equal(JSON.parse(silent.out).answer, 'The host refused the connection.')
  })

  test('keeps to the addresses that deliveries may go to', async () => {
    const receiver = await openReceiver(() => ({ status: 200 }))
    const { port } = new URL(receiver.url)
    const closed = { ASSAY_OUTBOUND_ALLOW: '' }
    const literal = await run(['test', receiver.url], closed)
    const named = await run(['test', `http://localhost:${port}/`, '--json'], closed)
    await receiver.close()
    assert.equal(literal.code, 1)
    assert.match(literal.err, /^The URL must not point to an address that is not public\.\n$/)
    assert.equal(named.code, 1)
    assert.match(JSON.parse(named.out).answer, /does not lead to a public address/)
    assert.equal(receiver.received.length, 0)
  })

  test('asks whose secret it is to be when there are several, and does not know that of nobody', async () => {
    const other = await deliveries.stores.register()
    const { code, err } = await run(['test', 'https://example.com/'])
    await deliveries.stores.database.pool.query('delete from accounts where id = $1', [other.id])
    assert.equal(code, 1)
    assert.match(err, /^There are 2 accounts\. Choose one with --account <id>/)
    const unknown = await run(['test', 'https://example.com/', '--account', nobody])
    assert.match(unknown.err, /^There is no account 0/)
  })
})

describe('webhooks deliveries, show and replay', () => {
  test('show what became of a delivery, and make it due again', async () => {
    await deliveries.clear()
    const receiver = await openReceiver((_, index) => ({ status: index === 0 ? 500 : 200, body: `answer ${index}` }))
    const id = await deliveries.add(receiver.url, '{"number":1}')
    await attemptAll({ retryMs: [] })
    const [dead] = await runJson('deliveries', '--state', 'dead')
    assert.deepEqual([dead.id, dead.state, dead.attempts, dead.last_status, dead.next_at], [id, 'dead', 1, 500, null])
    assert.deepEqual(await runJson('deliveries', '--state', 'pending'), [])
    assert.deepEqual(await runJson('deliveries', '--account', nobody), [])
    assert.match((await run(['deliveries', '--limit', '5'])).out, new RegExp(`^id .*\n${id} .* dead `))

    assert.deepEqual(await runJson('replay', id), { replayed: 1 })
    await attemptAll({ retryMs: [] })
    await receiver.close()
    const shown = await runJson('show', id)
    assert.deepEqual([shown.state, shown.body], ['delivered', '{"number":1}'])
    assert.deepEqual(
      shown.log.map(({ status, answer }: { status: number; answer: string }) => [status, answer]),
      [
        [500, 'answer 0'],
        [200, 'answer 1'],
      ],
    )
    const text = (await run(['show', id])).out
    assert.match(text, /\nstate +delivered\n/)
    assert.match(text, /\n\S+Z +500 +\d+ +answer 0\n\S+Z +200 +\d+ +answer 1\n/)
  })

  test('replay all that failed since a time, of one account or of all', async () => {
    await deliveries.clear()
    const receiver = await openReceiver(() => ({ status: 500 }))
    for (let i = 0; i < 3; i++) await deliveries.add(receiver.url)
    await attemptAll({ retryMs: [] })
    await receiver.close()
    const since = new Date(Date.now() - 60_000).toISOString()
    assert.deepEqual(await runJson('replay', '--failed-since', since, '--account', nobody), { replayed: 0 })
    assert.deepEqual(await runJson('replay', '--failed-since', since), { replayed: 3 })
    assert.equal(await deliveries.countIn('pending'), 3)
  })

  test('refuse what makes no sense', async () => {
    const cases: [args: string[], code: number, says: RegExp][] = [
      [['replay'], 1, /^Give the ID of a delivery, or --failed-since/],
      [['replay', nobody, '--failed-since', '2027-01-01'], 1, /^Give the ID of a delivery, or --failed-since/],
      [['replay', nobody], 1, /^There is no delivery 0/],
      [['show', nobody], 1, /^There is no delivery 0/],
      [['deliveries', '--state', 'lost'], 2, /Enter one of pending, delivered, dead, stopped\./],
      [['deliveries', '--limit', '0'], 2, /Enter a whole number from 1 to 10000\./],
    ]
    for (const [args, code, says] of cases) {
      const ended = await run(args)
      assert.equal(ended.code, code, args.join(' '))
      assert.match(ended.err, says)
    }
  })
})

test('webhooks endpoints shows a receiver that only failed and is paused, and resume lets it have its deliveries', async () => {
  await deliveries.clear()
  const receiver = await openReceiver(() => ({ status: 500 }))
  await deliveries.add(receiver.url)
  await attemptAll({ retryMs: [0, 0, 0] })
  await deliveries.stores.database.pool.query(
    `update webhook_endpoints set failing_since = failing_since - $1 * interval '1 millisecond'`,
    [fiveDaysMs],
  )
  await attemptAll({ retryMs: [0, 0, 0] })
  await attemptAll({ retryMs: [0, 0, 0] })
  await receiver.close()
  const [endpoint] = await runJson('endpoints')
  assert.deepEqual(
    [endpoint.account_id, endpoint.url, endpoint.waiting, endpoint.last_success_at],
    [deliveries.account.id, receiver.url, 1, null],
  )
  assert(endpoint.failing_since !== null && endpoint.paused_at !== null)
  assert.equal(receiver.received.length, 2)
  assert.deepEqual(await runJson('endpoints', '--account', nobody), [])

  const target = ['--account', deliveries.account.id, '--url', receiver.url]
  assert.equal((await runJson('resume', ...target)).resumed, true)
  const [resumed] = await runJson('endpoints')
  assert.equal(resumed.paused_at, null)
  const again = await run(['resume', ...target])
  assert.equal(again.code, 1)
  assert.match(again.err, /has no paused receiver with that URL/)
})

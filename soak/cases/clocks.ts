import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import { setTimeout as pause } from 'node:timers/promises'
import { headers } from '@assay/contract'
import pg from 'pg'
import type { Installation } from '../../acceptance/support/chaos-installation.ts'
import { openFakeClock, toRunner } from '../../acceptance/support/faketime.ts'
import { openReceiver } from '../../acceptance/support/receiver.ts'
import { makeCaller, toId } from '../../acceptance/support/submitting.ts'
import { waitUntil } from '../../acceptance/support/wait-until.ts'
import { openTestPostgres } from '../../scripts/test-postgres.ts'
import type { Case } from '../case.ts'
import { underLoad } from '../under-load.ts'

const offsets = ['-40d', '-2d', '-1h', '-90', '+90', '+1h', '+2d', '+40d']
const hour = 3600

/**
 * Wall clocks alone are wrong: no setting of the time changes the monotonic clock. PostgreSQL's is set ahead by less than
 * a day, because idempotency keys that are a day old by its clock are deleted.
 */
export const soak: Case = {
  about:
    'service and PostgreSQL apart by 90 s, 1 h, 2 and 40 days, both ways; PostgreSQL set ahead and back (libfaketime)',
  async run() {
    const observed: string[] = []
    for (const offset of offsets) observed.push(`${offset}: ${await runApart(offset)}`)
    return [...observed, `PostgreSQL 20 h ahead and back: ${await setBack()}`].join('; ')
  },
}

/** The service starts with a wrong clock, and is killed and started again under load, so that its sweeper runs. */
async function runApart(offset: string): Promise<string> {
  const clock = openFakeClock(offset)
  const postgres = await openTestPostgres()
  const pool = openPool(postgres.url)
  try {
    return await underLoad({
      settings: { ASSAY_DATABASE_URL: postgres.url, ASSAY_WEBHOOK_RETRIES: '1h', ASSAY_OUTBOUND_ALLOW: '127.0.0.0/8' },
      under: toRunner(clock),
      async disturb(installation) {
        const checks = await startChecks(installation, pool)
        await installation.faults.service()
        await pause(4000)
        const text = await checks.end()
        clock.set('+0')
        return text
      },
    })
  } finally {
    await pool.end()
    await postgres.close()
    clock.remove()
  }
}

/** The clock of PostgreSQL goes ahead and back while jobs run, and the service is killed while it is ahead. */
async function setBack(): Promise<string> {
  const clock = openFakeClock('+0')
  const postgres = await openTestPostgres([], clock.env)
  const pool = openPool(postgres.url)
  try {
    return await underLoad({
      settings: { ASSAY_DATABASE_URL: postgres.url },
      async disturb(installation) {
        clock.set('+20h')
        await pause(3000)
        // Leases of the killed service end 20 hours from now.
        await installation.kill()
        clock.set('+0')
        const countStuck = async () => {
          const { rows } = await pool.query(`select from jobs where held_until > now() + interval '1 hour'`)
          return rows.length
        }
        const stuck = await countStuck()
        await installation.start()
        await waitUntil('all leases to end', async () => (await countStuck()) === 0, 90_000)
        return `${stuck} jobs were left with a lease in the future`
      },
      backMs: 120_000,
    })
  } finally {
    await pool.end()
    await postgres.close()
    clock.remove()
  }
}

function openPool(url: string): pg.Pool {
  const pool = new pg.Pool({ connectionString: url, max: 2 })
  pool.on('error', () => {})
  return pool
}

/** Submits, fails a webhook and uses up a rate before the fault; `end` checks what became of them. */
async function startChecks({ url, operate }: Installation, pool: pg.Pool) {
  const receiver = await openReceiver(() => ({ status: 500 }), { host: '127.0.0.1' })
  const create = async (...options: string[]) =>
    (await operate('accounts', 'create', '--name', 'clock', ...options)) as { id: string; api_key: string }
  const [account, limited] = [await create('--credits', '5'), await create('--rate', '2/1h')]
  const caller = makeCaller(url, account.api_key)
  const key = { [headers.idempotencyKey]: randomUUID() }
  const submit = async () =>
    toId(await caller.sendFile('malware', 'submit', 'harmless', { callback_url: receiver.url }, key))
  const id = await submit()
  await caller.complete('malware', id)
  await waitUntil('the webhook to fail', () => receiver.received.length > 0)
  const askLimited = async () => (await makeCaller(url, limited.api_key).fetchResult('malware', id)).status
  for (let n = 0; n < 2; n++) assert.notEqual(await askLimited(), 429)
  return {
    async end(): Promise<string> {
      assert.equal(await submit(), id, 'the idempotency key is known')
      assert.equal(await caller.readSpent(), 1, 'and nothing is charged again')
      assert.equal(await askLimited(), 429, 'the rate window goes on')
      const { rows } = await pool.query<{ attempts: number; due: number; rolls: number; wrong: number }>(
        `select attempts, extract(epoch from next_at - now())::float8 as due,
           (select count(*) from credit_ledger where kind = 'roll')::int as rolls,
           (select count(*) from scans where created_at not between now() - interval '10 minutes' and now() + interval '1 s'
             or completed_at not between created_at and now() + interval '1 s')::int as wrong
         from deliveries where scan_id = $1`,
        [id],
      )
      const [{ attempts, due, rolls, wrong } = { attempts: 0, due: 0, rolls: -1, wrong: -1 }] = rows
      assert.deepEqual([attempts, receiver.received.length], [1, 1], 'the schedule of the webhook is kept')
      assert(due > 0.5 * hour && due < 1.3 * hour, `the next attempt is due in ${due} s`)
      assert.deepEqual([rolls, wrong], [0, 0], 'periods, and times of results')
      await receiver.close()
      return 'schedule, key, rate, period and times kept'
    },
  }
}

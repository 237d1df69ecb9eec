import assert from 'node:assert/strict'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, before, describe, test } from 'node:test'
import Fastify, { type FastifyInstance } from 'fastify'
import type { Handlers } from '../../src/admin/call.ts'
import { makeOperatorAccountHandlers } from '../../src/admin/operator-handlers.ts'
import { registerAdmin } from '../../src/admin/register-admin.ts'
import { openStores, type Stores } from '../../src/compose/stores.ts'
import { loadConfig } from '../../src/config/load-config.ts'
import { makeAuditLog } from '../../src/database/console/audit-log.ts'
import { afterCommit, atomically, changeRows, findRow, inTransaction } from '../../src/database/query.ts'
import { silentLog } from '../support/silent-log.ts'
import { openTestDatabase } from '../support/test-database.ts'
import { testMasterKeyText } from '../support/test-sealer.ts'

const adminToken = 'a'.repeat(32)
const origin = { address: '192.0.2.1', agent: 'test' }
const ada = { name: 'Ada', email: 'ada@example.com', password: 'correct horse battery' }

describe('a change and its entry in the audit log', () => {
  const dir = mkdtempSync(join(tmpdir(), 'assay-audited-'))
  let database: Awaited<ReturnType<typeof openTestDatabase>>
  let stores: Stores
  let app: FastifyInstance
  before(async () => {
    database = await openTestDatabase()
    const settings = { ASSAY_DATABASE_URL: database.url, ASSAY_DATA_DIR: dir, ASSAY_MASTER_KEY: testMasterKeyText }
    const { config } = loadConfig(settings)
    stores = await openStores(config, 'service', silentLog)
    app = Fastify()
    const handlers = makeOperatorAccountHandlers({ ...stores, ...stores.auth }) as Partial<Handlers> as Handlers
    registerAdmin(app, { ...stores.auth, adminToken, handlers })
    await invite().then((token) => stores.auth.invitations.accept(token, ada, origin))
  })
  after(async () => {
    await app.close()
    await stores.close()
    await database.drop()
    rmSync(dir, { recursive: true, force: true })
  })

  const invite = async () => (await stores.auth.invitations.inviteOperator()).token
  const send = async (method: 'POST' | 'PUT' | 'DELETE', path: string, body?: object) => {
    const headers = { authorization: `Bearer ${adminToken}`, 'content-type': 'application/json' }
    const options = { method, url: `/admin/v1/operator${path}`, headers }
    return (await app.inject(body === undefined ? options : { ...options, payload: JSON.stringify(body) })).statusCode
  }

  /** The content of every table that a change may touch. Attempts of sign-ins are counted also when they fail. */
  async function readTables(): Promise<Record<string, string>> {
    const names = ['accounts', 'balances', 'api_keys', 'plans', 'credit_ledger', 'members', 'memberships']
    const texts: Record<string, string> = {}
    for (const name of [...names, 'console_sessions', 'console_links', 'audit_log']) {
      const row = await findRow<{ text: string }>(
        database.pool,
        `select coalesce(string_agg(t::text, E'\\n' order by t::text), '') as text from ${name} t`,
      )
      texts[name] = row?.text ?? ''
    }
    return texts
  }

  /** Runs `work` while no entry can be written, as when the service dies at that moment. */
  async function withoutAuditLog(work: () => Promise<void>) {
    await database.pool.query(`
      create function refuse_entry() returns trigger language plpgsql as $$ begin raise 'no entry today'; end $$;
      create trigger refuse_entry before insert on audit_log for each row execute function refuse_entry()`)
    try {
      await work()
    } finally {
      await database.pool.query('drop function refuse_entry cascade')
    }
  }

  test('are committed together, whichever route makes the change', async () => {
    const { id } = (await stores.registration.register({ name: 'kept', plan: 'unlimited' })).account
    assert.equal(await send('PUT', '/plans/spare', { credits_per_period: 5, rate: '1/1m' }), 204)
    const link = await invite()
    const reset = await stores.auth.invitations.resetPassword(ada.email, { removesTotp: false, actor: 'test' })
    const before = await readTables()
    const changes: [string, () => Promise<unknown>][] = [
      ['create an account', () => send('POST', '/accounts', { name: 'new', plan: 'unlimited' })],
      ['grant credits', () => send('POST', `/accounts/${id}/credits`, { amount: 7, note: 'gift' })],
      ['save a plan', () => send('PUT', '/plans/other', { credits_per_period: 5, rate: '1/1m' })],
      ['delete a plan', () => send('DELETE', '/plans/spare')],
      ['sign in', () => stores.auth.signIn.signIn(ada, origin)],
      ['join', () => stores.auth.invitations.accept(link, { ...ada, email: 'eve@example.com' }, origin)],
      ['join again', () => stores.auth.invitations.accept(link, ada, origin)],
      [
        'reset',
        () =>
          stores.auth.invitations.accept(reset?.token ?? '', { ...ada, password: 'another long passphrase' }, origin),
      ],
    ]
    await withoutAuditLog(async () => {
      for (const [name, change] of changes) {
        const result = await change().catch((error: Error) => error.message)
        assert.match(String(result), /500|no entry today/, name)
        assert.deepEqual(await readTables(), before, name)
      }
    })
    for (const [name, change] of changes.filter(([name]) => name !== 'join again')) {
      const result = await change()
      assert.ok(typeof result !== 'number' || result < 300, `${name}: ${result}`)
    }
    const { rows } = await stores.auth.audit.verify()
    assert.equal(rows, 2 + changes.length - 1, 'one entry for each change, two before them')
  })

  test('are shown to an owner who confirmed a later change before this one was committed', async () => {
    const { audit } = stores.auth
    const { id: accountId } = (await stores.registration.register({ name: 'told', plan: 'unlimited' })).account
    const list = (since: Date | null) =>
      audit.listOfAccount(accountId, { actions: ['first', 'second'], since, limit: 9 })
    let seenAt: Date | null = null
    await audit.atomically(async () => {
      await stores.plans.listPlans()
      // An entry through another pool does not join the unit.
      await makeAuditLog(database).note({ actor: 'other', action: 'second', accountId })
      seenAt = (await list(null))[0]?.at ?? null
      // Notices have times in milliseconds.
      await database.pool.query('select pg_sleep(0.002)')
      await audit.note({ actor: 'ada', action: 'first', accountId })
    })
    assert.notEqual(seenAt, null)
    assert.deepEqual(
      (await list(seenAt)).map(({ action }) => action),
      ['first'],
    )
  })

  test('join one transaction with parts that may fail alone, and tell others after the commit', async () => {
    const { pool } = database
    const read = async (db: Parameters<typeof findRow>[0]) =>
      (await findRow<{ count: number }>(db, 'select count(*)::int as count from plans'))?.count ?? 0
    const copy = (name: string) =>
      `insert into plans select p.* from plans, jsonb_populate_record(plans, jsonb_build_object('name', '${name}')) p
       where plans.name = 'unlimited'`
    const start = await read(pool)
    let seenAtCommit = -1
    const late = await atomically(pool, async () => {
      await changeRows(pool, copy('first'))
      const failing = inTransaction(pool, async (client) => {
        await changeRows(client, copy('second'))
        throw new Error('a part')
      })
      await assert.rejects(failing, /a part/)
      await inTransaction(pool, (client) => changeRows(client, copy('third')))
      assert.equal(await read(pool), start + 2)
      assert.equal(await read(stores.database.pool), start, 'another pool sees nothing before the commit')
      afterCommit(() => {
        seenAtCommit = 0
      })
      assert.equal(seenAtCommit, -1)
      return new Promise<() => Promise<number>>((resolve) => setImmediate(resolve, () => read(pool)))
    })
    assert.equal(seenAtCommit, 0)
    assert.equal(await late(), start + 2)
    const failing = atomically(pool, async () => {
      afterCommit(() => assert.fail('nothing was committed'))
      await changeRows(pool, copy('fourth'))
      throw new Error('all of it')
    })
    await assert.rejects(failing, /all of it/)
    assert.equal(await read(pool), start + 2)
  })
})

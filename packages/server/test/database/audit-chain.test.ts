import assert from 'node:assert/strict'
import { createHash } from 'node:crypto'
import { after, before, describe, test } from 'node:test'
import { makeAuditLog } from '../../src/database/console/audit-log.ts'
import type { AuditHead } from '../../src/domain/ports/operations.ts'
import { openTestStores, type TestStores } from '../support/test-stores.ts'

describe('the chain of the audit log', () => {
  let stores: TestStores
  let audit: ReturnType<typeof makeAuditLog>
  const heads: AuditHead[] = []
  before(async () => {
    stores = await openTestStores()
    audit = makeAuditLog({ pool: stores.database.pool, onNoted: (head) => heads.push(head) })
    const { id: accountId } = await stores.register()
    await audit.note({ actor: 'ada@example.com', action: 'key.create', target: 'ci', accountId, address: '192.0.2.1' })
    const odd = 'quote " backslash \\ tab \t line \n\r\b\f\u0001\u001f\u007f \u2028 é 日本 😀 </script>'
    await audit.note({ actor: odd, action: odd, target: odd, detail: odd })
    await audit.note({ actor: '', action: '', target: '' })
    await audit.note({ actor: 'last', action: 'plan.save', detail: '{"a":1}' })
  })
  after(() => stores.close())

  /** Changes the log as somebody can who has all rights in the database, verifies it, and undoes the change. */
  async function verifyAfter(statements: string, anchor?: AuditHead) {
    const { pool } = stores.database
    await pool.query('create table kept_log as table audit_log; create table kept_head as table audit_head')
    await pool.query('alter table audit_log disable trigger user; alter table audit_head disable trigger user')
    try {
      await pool.query(statements)
      return await audit.verify(anchor)
    } finally {
      await pool.query(`truncate audit_log, audit_head; insert into audit_log select * from kept_log;
        insert into audit_head select * from kept_head; drop table kept_log, kept_head;
        alter table audit_log enable trigger user; alter table audit_head enable trigger user`)
    }
  }

  test('is intact after entries of any form, and its head is that of the last entry', async () => {
    const { rows, head, fault } = await audit.verify()
    assert.deepEqual({ rows, fault }, { rows: 4, fault: undefined })
    assert.deepEqual(head, heads.at(-1))
    for (const earlier of heads) assert.equal((await audit.verify(earlier)).fault, undefined)
  })

  test('is listed newest first, by action, part of an actor, time and page', async () => {
    const page = { before: undefined, limit: 100 }
    const list = async (...given: Parameters<typeof audit.list>) =>
      (await audit.list(...given)).map(({ actor }) => actor)
    assert.equal((await list({}, page))[0], 'last')
    assert.deepEqual(await list({ action: 'key.create' }, page), ['ada@example.com'])
    assert.deepEqual(await list({ actor: 'ADA@' }, page), ['ada@example.com'])
    assert.deepEqual(await list({ actor: '%' }, page), [])
    assert.deepEqual(await list({ to: new Date(0) }, page), [])
    assert.equal((await list({ from: new Date(0) }, page)).length, 4)
    assert.deepEqual(await list({}, { before: undefined, limit: 1 }), ['last'])
  })

  test('is intact after entries that many processes write at once', async () => {
    const writers = Array.from({ length: 4 }, () => makeAuditLog(stores.database))
    await Promise.all(
      Array.from({ length: 40 }, (_, n) => writers[n % 4]?.note({ actor: `writer ${n}`, action: 'test' })),
    )
    assert.deepEqual((await audit.verify()).fault, undefined)
    assert.equal((await audit.verify()).rows, 44)
  })

  test('breaks when any field of any row is changed', async () => {
    for (const column of ['actor', 'action', 'target', 'detail', 'address']) {
      const { fault, rows } = await verifyAfter(`update audit_log set ${column} = 'forged' where id = 2`)
      assert.match(fault ?? '', /^Row 2 of the audit log, or the one before, was changed/, column)
      assert.equal(rows, 1)
    }
    const account = await verifyAfter('update audit_log set account_id = gen_random_uuid() where id = 1')
    assert.match(account.fault ?? '', /^Row 1 /)
    const time = await verifyAfter(`update audit_log set at = at + interval '1 microsecond' where id = 3`)
    assert.match(time.fault ?? '', /^Row 3 /)
    const empty = await verifyAfter(`update audit_log set target = null where id = 3`)
    assert.match(empty.fault ?? '', /^Row 3 /)
    const hash = await verifyAfter(`update audit_log set hash = decode(repeat('ab', 32), 'hex') where id = 4`)
    assert.match(hash.fault ?? '', /^Row 4 /)
  })

  test('breaks when rows are removed, at the beginning, in the middle or at the end', async () => {
    assert.match((await verifyAfter('delete from audit_log where id = 1')).fault ?? '', /^Row 1 .* is missing/)
    assert.match((await verifyAfter('delete from audit_log where id = 3')).fault ?? '', /^Row 3 .* is missing/)
    const last = await verifyAfter('delete from audit_log where id > 42')
    assert.match(last.fault ?? '', /ends with row 42, but 44 rows were written: the last are missing/)
    assert.match((await verifyAfter('truncate audit_log')).fault ?? '', /ends with row 0, but 44 rows were written/)
    assert.match((await verifyAfter('delete from audit_head')).fault ?? '', /head of the audit log is missing/)
    const moved = await verifyAfter('delete from audit_log where id = 3; update audit_log set id = id - 1 where id > 3')
    assert.match(moved.fault ?? '', /^Row 3 /)
  })

  test('with a head that was kept elsewhere, also shows a log that was written anew or cut with its head', async () => {
    const anchor = heads.at(-1)
    const cut = `delete from audit_log where id > 2;
      update audit_head set (id, hash) = (select id, hash from audit_log where id = 2)`
    assert.equal((await verifyAfter(cut)).fault, undefined)
    assert.match((await verifyAfter(cut, anchor)).fault ?? '', /ends with row 2, but the given head is row 4/)

    const forged = createHash('sha256').update('forged').digest('hex')
    const wrong = await audit.verify({ id: 3, hash: forged })
    assert.match(wrong.fault ?? '', /^Row 3 .* the log was written anew/)
  })

  test('cannot be emptied like that of a new installation once there are accounts', async () => {
    const { pool } = stores.database
    const client = await pool.connect()
    try {
      await client.query(`set assay.restoring = 'on'`)
      for (const statement of ['truncate audit_log', 'delete from audit_log', 'update audit_head set id = 1']) {
        await assert.rejects(client.query(statement), /The audit log only grows/, statement)
      }
    } finally {
      await client.query('reset assay.restoring')
      client.release()
    }
    assert.equal((await audit.verify()).fault, undefined)
  })
})

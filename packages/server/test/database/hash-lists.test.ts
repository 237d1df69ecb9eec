import assert from 'node:assert/strict'
import { createHash } from 'node:crypto'
import { after, before, describe, test } from 'node:test'
import { findHash, makeHashListStore } from '../../src/database/hash-list-store.ts'
import { makeHashReader } from '../../src/domain/knowledge/hash-csv.ts'
import { importHashes } from '../../src/domain/knowledge/import-hashes.ts'
import type { HashListStore } from '../../src/domain/ports/hash-list-store.ts'
import { openTestStores, type TestStores } from '../support/test-stores.ts'

const oneRow = { rows: Buffer.from(`\\x${'0'.repeat(64)}\t\n`), count: 1 }
const toHash = (text: string) => createHash('sha256').update(text).digest('hex')

describe('hash lists', () => {
  let stores: TestStores
  let lists: HashListStore
  before(async () => {
    stores = await openTestStores()
    lists = makeHashListStore(stores.database)
  })
  after(() => stores.close())

  /** Gives the file in pieces that divide its lines. */
  async function* toFile(text: string, pieceBytes = 100) {
    const bytes = Buffer.from(text)
    for (let at = 0; at < bytes.length; at += pieceBytes) yield bytes.subarray(at, at + pieceBytes)
  }
  const load = (name: string, text: string, verdict: 'bad' | 'good' = 'bad', store = lists) =>
    importHashes(
      { store, reader: makeHashReader({}) },
      { name, verdict, origin: 'import', createdBy: 'test' },
      toFile(text),
    )
  const countRows = async () =>
    (await stores.database.pool.query<{ count: number }>('select count(*)::int as count from listed_hashes')).rows[0]
      ?.count

  test('an import replaces a list of the same name as a whole, and tells broken rows', async () => {
    const [one, two, three] = ['1', '2', '3'].map(toHash)
    const first = await load('feed', `${one}\nbroken\n${two}\n${one}\n${'x'.repeat(70_000)}\n`)
    assert.equal(first.list.hashes, 2)
    assert.equal(first.duplicates, 1)
    assert.equal(first.broken, 2)
    assert.deepEqual(
      first.brokenLines.map(({ line }) => line),
      [2, 5],
    )
    assert.deepEqual(await lists.findHash(one ?? ''), { verdict: 'bad', name: null, list: 'feed' })
    const before = (await lists.findActive()).version

    const second = await load('feed', `${three}`, 'good')
    assert.equal(second.replaced, 2)
    assert.equal(await lists.findHash(one ?? ''), undefined)
    assert.equal((await lists.findHash(three ?? ''))?.verdict, 'good')
    assert.notEqual((await lists.findActive()).version, before)
  })

  test('a bad hash counts before a good one', async () => {
    const hash = toHash('both')
    await load('good ones', hash, 'good')
    await load('bad ones', hash)
    assert.equal((await lists.findHash(hash))?.list, 'bad ones')
    assert.equal((await lists.listMatches(hash)).length, 2)
    assert.equal(await lists.remove('import', 'bad ones'), true)
    assert.equal((await lists.findHash(hash))?.list, 'good ones')
    assert.equal(await lists.remove('import', 'bad ones'), false)
  })

  test('an import that fails, or is killed, counts for nothing, and its rows are deleted', async () => {
    const hash = toHash('never')
    const failing = { ...lists, activate: () => Promise.reject(new Error('killed')), abandon: async () => {} }
    await assert.rejects(load('cut', hash, 'bad', failing), /killed/)
    assert.equal(await lists.findHash(hash), undefined)
    const before = await countRows()
    await lists.deleteRemoved()
    assert.equal(await countRows(), before)
    // The import was abandoned long ago.
    await stores.database.pool.query(
      `update hash_lists set importing_until = now() - interval '1 second' where state = 'importing'`,
    )
    await stores.database.pool.query('delete from revision_work')
    assert.ok((await lists.deleteRemoved()) > 0)
    const { rows } = await stores.database.pool.query(
      `select from hash_lists where state <> 'active' union all
       select from listed_hashes where list_id not in (select id from hash_lists)`,
    )
    assert.equal(rows.length, 0)
  })

  test('an import that counts as abandoned adds nothing more', async () => {
    const id = await lists.beginImport({ name: 'slow', verdict: 'bad', origin: 'import', createdBy: 'test' })
    await lists.abandon(id)
    await assert.rejects(lists.addHashes(id, oneRow), /abandoned/)
    await assert.rejects(lists.activate(id), /abandoned/)
  })

  test('rows that a crash of PostgreSQL lost are noticed', async () => {
    const id = await lists.beginImport({ name: 'crashed', verdict: 'bad', origin: 'import', createdBy: 'test' })
    await lists.addHashes(id, oneRow)
    await stores.database.pool.query(`truncate hash_import_${id}`)
    await assert.rejects(lists.sortHashes(id), /restarted during the import/)
  })

  test('a file without hashes leaves the list as it was', async () => {
    await load('kept', toHash('kept'))
    await assert.rejects(load('kept', 'sha256\nnothing\n'), /no SHA-256 hashes.*Line 2/)
    assert.equal((await lists.findHash(toHash('kept')))?.list, 'kept')
  })

  test('the lookup reads the index once for each list', async () => {
    const { rows } = await stores.database.pool.query<{ 'QUERY PLAN': string }>(`explain ${findHash}`, [
      Buffer.alloc(32),
    ])
    const plan = rows.map((row) => row['QUERY PLAN']).join('\n')
    assert.match(plan, /Index Cond: \(\(list_id = hash_lists.id\) AND \(sha256 = /)
  })
})

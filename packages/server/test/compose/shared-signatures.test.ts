import assert from 'node:assert/strict'
import { randomBytes } from 'node:crypto'
import {
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  truncateSync,
  utimesSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, before, beforeEach, describe, type TestContext, test } from 'node:test'
import { openSharedSignatures } from '../../src/compose/shared-signatures.ts'
import { makeSignatures } from '../../src/compose/signatures.ts'
import { loadConfig } from '../../src/config/load-config.ts'
import { makeSignatureStore } from '../../src/database/signature-store.ts'
import { OperatorMistake } from '../../src/domain/problem.ts'
import { silentLog } from '../support/silent-log.ts'
import { openTestDatabase } from '../support/test-database.ts'

const megabyte = 1024 * 1024

describe('signature files in the database', () => {
  let database: Awaited<ReturnType<typeof openTestDatabase>>
  let store: ReturnType<typeof makeSignatureStore>
  before(async () => {
    database = await openTestDatabase()
    store = makeSignatureStore(database)
  })
  beforeEach(() => database.pool.query('truncate signature_files'))
  after(() => database.drop())

  const toFile = (name: string, content: Buffer | string) => ({ name, read: async () => Buffer.from(content) })
  const save = (name: string, content: Buffer | string) => store.saveFiles([toFile(name, content)])
  const listNames = async () => (await store.listFiles()).map(({ name }) => name)

  async function openNode(t: TestContext, dataDir = mkdtempSync(join(tmpdir(), 'assay-shared-'))) {
    const { config } = loadConfig({ ASSAY_DATA_DIR: dataDir }, '/nonexistent/assay.toml')
    const shared = await openSharedSignatures(config, { store, isOutage: () => false, log: silentLog })
    t.after(async () => {
      await shared.close()
      rmSync(dataDir, { recursive: true, force: true })
    })
    const dir = join(dataDir, 'signatures', 'shared')
    const list = () =>
      ['clamav', 'yara'].flatMap((kind) => readdirSync(join(dir, kind)).map((name) => `${kind}/${name}`))
    return { ...shared, dataDir, list, toPath: (path: string) => join(dir, path) }
  }

  test('are on a node with a new data directory from the start, complete', async (t) => {
    const large = randomBytes(9 * megabyte)
    await store.saveFiles([toFile('large.ndb', large), toFile('rules.yar', 'rule a { condition: false }')])
    const node = await openNode(t)
    assert.deepEqual(node.list(), ['clamav/large.ndb', 'yara/rules.yar'])
    assert(readFileSync(node.toPath('clamav/large.ndb')).equals(large))
  })

  test('are added, changed and removed on a node; a changed file of the same size gets another time', async (t) => {
    const node = await openNode(t)
    await save('own.ndb', 'one')
    await node.refresh()
    const before = statSync(node.toPath('clamav/own.ndb'))
    await save('own.ndb', 'two')
    await node.refresh()
    assert.equal(readFileSync(node.toPath('clamav/own.ndb'), 'utf8'), 'two')
    assert(statSync(node.toPath('clamav/own.ndb')).mtimeMs >= before.mtimeMs + 1)
    const unchanged = statSync(node.toPath('clamav/own.ndb'))
    await node.refresh()
    assert.equal(statSync(node.toPath('clamav/own.ndb')).ctimeMs, unchanged.ctimeMs)
    assert.equal(await store.removeFile('own.ndb'), true)
    assert.equal(await store.removeFile('own.ndb'), false)
    await node.refresh()
    assert.deepEqual(node.list(), [])
  })

  test('replace a copy that was damaged while no service ran', async (t) => {
    await save('own.ndb', 'good')
    const node = await openNode(t)
    await node.close()
    const path = node.toPath('clamav/own.ndb')
    const { atime, mtime } = statSync(path)
    writeFileSync(path, 'evil')
    utimesSync(path, atime, mtime)
    await openNode(t, node.dataDir)
    assert.equal(readFileSync(path, 'utf8'), 'good')
  })

  test('that cannot be copied are a fault, and the previous ones stay', async (t) => {
    await save('own.ndb', 'good')
    const node = await openNode(t)
    await database.pool.query(`update signature_files set content = 'bad', sha256 = 'x', changed_at = now()`)
    t.mock.method(store, 'listFiles', async () => {
      throw new Error('No space left')
    })
    await node.refresh()
    assert.match(node.findFault() ?? '', /cannot be copied .* previous ones stay in use\.$/)
    assert.equal(readFileSync(node.toPath('clamav/own.ndb'), 'utf8'), 'good')
    t.mock.restoreAll()
    await database.pool.query('truncate signature_files')
    await node.refresh()
    assert.equal(node.findFault(), undefined)
  })

  test('are saved all or none, within bounds of name and size', async () => {
    const refuses = (files: ReturnType<typeof toFile>[], expected: RegExp) =>
      assert.rejects(store.saveFiles(files), (error: Error) => {
        assert(error instanceof OperatorMistake, error.stack)
        assert.match(error.message, expected)
        return true
      })
    for (const name of ['', '.hidden.ndb', 'a b.ndb', '../a.ndb', `${'a'.repeat(100)}.ndb`]) {
      await refuses([toFile('good.ndb', 'x'), toFile(name, 'x')], /use up to 100 letters/)
    }
    await refuses([toFile('good.ndb', 'x'), toFile('large.ndb', Buffer.alloc(64 * megabyte + 1))], /up to 64 MB/)
    assert.throws(() => store.requireStorable([{ name: 'large.ndb', bytes: 64 * megabyte + 1 }]), /up to 64 MB/)
    assert.throws(() => store.requireStorable([{ name: 'a b.ndb', bytes: 1 }]), /use up to 100 letters/)
    assert.deepEqual(await listNames(), [])
    // Compressed rows of 64 MB, which no test needs to send or to store.
    await database.pool.query('alter table signature_files alter column content set storage extended')
    await database.pool.query(
      `insert into signature_files (name, content, sha256)
       select 'f' || i || '.ndb', convert_to(repeat('x', ${64 * megabyte}), 'utf8'), 'x' from generate_series(1, 4) i`,
    )
    await refuses([toFile('one-more.ndb', 'x')], /together may have up to 256 MB/)
    assert.equal((await listNames()).length, 4)
  })

  test('of concurrent imports do not wait for each other in a circle', async () => {
    const files = Array.from({ length: 30 }, (_, i) => toFile(`${i}.ndb`, 'x'))
    await Promise.all([store.saveFiles(files), store.saveFiles(files.toReversed()), store.saveFiles(files)])
    assert.equal((await listNames()).length, 30)
  })

  test('of an import are all refused for one of them, before it is loaded or ClamAV databases are placed', async (t) => {
    const dir = mkdtempSync(join(tmpdir(), 'assay-import-'))
    t.after(() => rmSync(dir, { recursive: true, force: true }))
    const { config } = loadConfig({ ASSAY_DATA_DIR: join(dir, 'data') }, '/nonexistent/assay.toml')
    const deps = { store, atomically: () => assert.fail('saved'), copyFiles: () => assert.fail('copied') }
    const { import: run, add } = makeSignatures(config, deps)
    writeFileSync(join(dir, 'daily.cvd'), 'x')
    writeFileSync(join(dir, 'large.yar'), '')
    truncateSync(join(dir, 'large.yar'), 65 * megabyte)
    const note = () => assert.fail('noted')
    await assert.rejects(run(dir, note), /large\.yar has 68157440 bytes, .* up to 64 MB/)
    await assert.rejects(add(join(dir, 'large.yar'), note), /up to 64 MB/)
    assert.deepEqual(readdirSync(dir).toSorted(), ['daily.cvd', 'large.yar'])
  })

  test('notify other nodes with the commit', async (t) => {
    const client = await database.pool.connect()
    t.after(() => client.release(true))
    const heard: (string | undefined)[] = []
    client.on('notification', ({ payload }) => heard.push(payload))
    await client.query('listen assay')
    await save('own.ndb', 'x')
    await store.removeFile('own.ndb')
    await client.query('select 1')
    assert.deepEqual(heard, ['signatures', 'signatures'])
  })
})

import assert from 'node:assert/strict'
import { after, before, beforeEach, describe, test } from 'node:test'
import { makeSignatureStore } from '../../src/database/signature-store.ts'
import { makeSourceStore } from '../../src/database/source-store.ts'
import type { ClaimedSource, NewSet } from '../../src/domain/ports/source-store.ts'
import { openTestDatabase } from '../support/test-database.ts'

describe('a source of signatures', () => {
  let database: Awaited<ReturnType<typeof openTestDatabase>>
  let sources: ReturnType<typeof makeSourceStore>
  let signatures: ReturnType<typeof makeSignatureStore>
  before(async () => {
    database = await openTestDatabase()
    sources = makeSourceStore(database)
    signatures = makeSignatureStore(database)
  })
  beforeEach(() => database.pool.query('truncate signature_files, signature_sources, revision_work'))
  after(() => database.drop())

  const add = (everyHours = 24) =>
    sources.addSource({
      name: 'feed',
      url: 'https://example.com/feed.ndb',
      fileName: null,
      everyHours,
      maxMegabytes: 4,
      sha256: null,
      minisignKey: null,
      publisher: null,
      licence: 'CC0',
    })
  const toFile = (name: string, content: string) => ({ name, read: async () => Buffer.from(content) })
  const validators = { etag: '"1"', lastModified: 'Wed, 18 Nov 2026 00:00:00 GMT' }
  const newSet = (change: Partial<NewSet>): NewSet => ({
    files: [],
    keep: [],
    signatures: 1,
    held: [],
    refused: [],
    testedFiles: 1,
    validators,
    ...change,
  })
  async function claim(name?: string): Promise<ClaimedSource> {
    const claimed = await sources.claim(60_000, name)
    assert.ok(claimed)
    return claimed
  }
  async function listContents(): Promise<Record<string, string>> {
    const texts = (await signatures.listFiles()).map(async (file) => {
      const pieces: Buffer[] = []
      for await (const piece of signatures.readContent(file)) pieces.push(piece)
      return [file.name, Buffer.concat(pieces).toString()]
    })
    return Object.fromEntries(await Promise.all(texts))
  }

  test('is held by one process at a time, until its lease ends or is released', async () => {
    assert.deepEqual([await add(), await add()], [true, false])
    const [first, second] = await Promise.all([sources.claim(60_000), sources.claim(60_000)])
    const held = first ?? second
    assert.ok(held)
    assert.equal([first, second].filter((claimed) => claimed !== undefined).length, 1)
    assert.equal(await sources.claim(60_000, 'feed'), undefined)
    assert.deepEqual(await sources.extend([held.token], 60_000), [held.token])
    await database.pool.query(`update signature_sources set leased_until = now() - interval '1 second'`)
    const other = await claim()
    assert.deepEqual(await sources.extend([held.token], 60_000), [])
    for (const record of [sources.recordUnchanged, (late: ClaimedSource) => sources.recordFailure(late, 'late')])
      assert.equal(await record(held), false)
    assert.equal(await sources.recordSet(held, newSet({ files: [toFile('feed--a.ndb', 'late')] })), false)
    assert.deepEqual(await listContents(), {})
    await sources.release([other.token])
    assert.equal((await sources.listSources())[0]?.attemptedAt, null)
    assert.ok(await sources.recordUnchanged(await claim()))
    assert.equal(await sources.claim(60_000), undefined, 'the next update is not due')
    assert.ok(await sources.makeDue('feed'))
    assert.equal((await claim()).name, 'feed')
  })

  test('replaces its files, keeps those that it is told to, and leaves those of the operator alone', async () => {
    await add()
    const held = [{ name: 'Feed.Held', file: '/known/good' }]
    const refused = [{ file: 'feed--c.ndb', reason: 'has no signatures' }]
    const files = [toFile('feed--a.ndb', 'a'), toFile('feed--b.hdb', 'b'), toFile('feed--c.ndb', 'c')]
    assert.ok(await sources.recordSet(await claim(), newSet({ files, signatures: 3 })))
    const [before] = await signatures.listFiles()
    const next = newSet({ files: [toFile('feed--a.ndb', 'a')], keep: ['feed--c.ndb'], held, refused })
    assert.ok(await sources.recordSet(await claim('feed'), next))
    assert.deepEqual(await listContents(), { 'feed--a.ndb': 'a', 'feed--c.ndb': 'c' })
    assert.deepEqual((await signatures.listFiles())[0], before, 'a file that is the same stays as it is')
    const [source] = await sources.listSources()
    assert.deepEqual(
      [source?.signatures, source?.held, source?.refused, source?.testedFiles, source?.error, source?.licence],
      [1, held, refused, 1, null, 'CC0'],
    )
    const { rows } = await database.pool.query('select signature_file from revision_work')
    assert.deepEqual(rows, [{ signature_file: 'feed--b.hdb' }, { signature_file: 'feed--b.hdb' }], 'added and removed')

    await signatures.saveFiles([toFile('feed--own.ndb', 'own')])
    const own = newSet({ files: [toFile('feed--own.ndb', 'x')] })
    await assert.rejects(sources.recordSet(await claim('feed'), own), /You have added a signature file feed--own\.ndb/)
    assert.equal((await listContents())['feed--own.ndb'], 'own')
    await assert.rejects(signatures.removeFile('feed--a.ndb'), /belongs to the source feed/)
    await assert.rejects(signatures.saveFiles([toFile('feed--a.ndb', 'x')]), /belongs to the source feed/)
    assert.ok(await sources.removeSource('feed'))
    assert.equal(await sources.removeSource('feed'), false)
    assert.ok(await signatures.removeFile('feed--own.ndb'))
    assert.deepEqual(await listContents(), {})
  })

  test('is due after its hours, one hour after a failure, and never again with 0 hours', async () => {
    const results: [everyHours: number, afterUpdate: number | null, afterFailure: number | null][] = [
      [12, 12, 1],
      [0, null, null],
    ]
    const readHours = async () => {
      const hours = `round(extract(epoch from next_at - now()) / 3600)::float8 as hours`
      return (await database.pool.query(`select ${hours} from signature_sources`)).rows[0]?.hours
    }
    for (const [everyHours, afterUpdate, afterFailure] of results) {
      assert.ok(await add(everyHours))
      assert.ok(await sources.recordSet(await claim(), newSet({})), 'the first update is due at once')
      assert.equal(await readHours(), afterUpdate)
      assert.ok(await sources.recordUnchanged(await claim('feed')))
      assert.equal(await readHours(), afterUpdate)
      assert.ok(await sources.recordFailure(await claim('feed'), 'failed'))
      assert.equal(await readHours(), afterFailure)
      assert.equal(await sources.claim(60_000), undefined)
      assert.ok(await sources.removeSource('feed'))
    }
  })

  test('is due again when the operator releases a signature meanwhile', async () => {
    const records: ((claimed: ClaimedSource) => Promise<boolean>)[] = [
      (claimed) => sources.recordSet(claimed, newSet({})),
      sources.recordUnchanged,
      (claimed) => sources.recordFailure(claimed, 'failed'),
    ]
    await add()
    for (const [at, record] of records.entries()) {
      const claimed = await sources.claim(60_000)
      assert.ok(claimed, `${at}`)
      assert.ok(await sources.releaseSignature('feed', `Feed.${at}`))
      assert.ok(await record(claimed))
      const again = await sources.claim(60_000)
      assert.ok(again, `${at}`)
      assert.deepEqual(again.validators, { etag: null, lastModified: null }, `${at}`)
      assert.ok(await record(again))
      assert.equal(await sources.claim(60_000), undefined, `${at}`)
      await sources.makeDue('feed')
    }
  })
})

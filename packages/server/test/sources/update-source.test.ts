import assert from 'node:assert/strict'
import { createHash } from 'node:crypto'
import { existsSync, mkdirSync, mkdtempSync, readdirSync, rmSync, utimesSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, before, beforeEach, describe, test } from 'node:test'
import { gzipSync } from 'node:zlib'
import { openContentStore } from '../../src/blobs/content-store.ts'
import { makeMemoryBudget } from '../../src/blobs/memory-content.ts'
import { makeOutbound } from '../../src/compose/scanning.ts'
import { makeUpdateSource } from '../../src/compose/sources/update-source.ts'
import { loadConfig } from '../../src/config/load-config.ts'
import { makeSignatureStore } from '../../src/database/signature-store.ts'
import { makeSourceStore } from '../../src/database/source-store.ts'
import type { ClaimedSource, SourceSettings } from '../../src/domain/ports/source-store.ts'
import { findProgram } from '../../src/engines/clamav/installation.ts'
import { openSourceWorker } from '../../src/workers/periodic-work.ts'
import { newTar, newZip } from '../engines/unpack-archives.ts'
import { silentLog } from '../support/silent-log.ts'
import { openTestDatabase } from '../support/test-database.ts'
import { waitFor } from '../support/wait-for.ts'
import { newMinisign, openPublisher, toNdb, toYara } from './feed-support.ts'

const lacking = findProgram('clamd') === undefined && 'clamd is not installed'

describe('the update of a source', { skip: lacking }, () => {
  const dir = mkdtempSync(join(tmpdir(), 'assay-sources-'))
  const knownGood = join(dir, 'known-good')
  const { config } = loadConfig(
    { ASSAY_DATA_DIR: join(dir, 'data'), ASSAY_OUTBOUND_ALLOW: '127.9.9.40/32' },
    '/nonexistent/assay.toml',
  )
  const contents = openContentStore({ dir: join(dir, 'content'), memory: makeMemoryBudget({ maxBytes: 2 ** 24 }) })
  let database: Awaited<ReturnType<typeof openTestDatabase>>
  let sources: ReturnType<typeof makeSourceStore>
  let signatures: ReturnType<typeof makeSignatureStore>
  let publisher: Awaited<ReturnType<typeof openPublisher>>
  before(async () => {
    database = await openTestDatabase()
    sources = makeSourceStore(database)
    signatures = makeSignatureStore(database)
    publisher = await openPublisher()
    mkdirSync(knownGood)
    writeFileSync(join(knownGood, 'letter.txt'), 'This letter is known to be good.')
  })
  beforeEach(() => database.pool.query('truncate signature_files, signature_sources'))
  after(async () => {
    publisher.close()
    await database.drop()
    await contents.close()
    rmSync(dir, { recursive: true, force: true })
  })

  const add = async (url: string, settings: Partial<SourceSettings> = {}) =>
    assert.ok(
      await sources.addSource({
        name: 'feed',
        url,
        fileName: null,
        everyHours: 24,
        maxMegabytes: 4,
        sha256: null,
        minisignKey: null,
        publisher: null,
        licence: null,
        ...settings,
      }),
    )
  const newUpdate = (more = {}, used = config) =>
    makeUpdateSource(used, {
      store: sources,
      fetcher: makeOutbound(config).fetcher,
      contents,
      log: silentLog,
      knownGoodDirs: [knownGood],
      ...more,
    })

  async function update(more = {}, used = config) {
    const claimed = await sources.claim(60_000, 'feed')
    assert.ok(claimed)
    const result = await newUpdate(more, used)(claimed, new AbortController().signal)
    const [source] = await sources.listSources()
    assert.ok(source)
    return { ...result, source }
  }

  async function listContents(): Promise<Record<string, string>> {
    const files = await signatures.listFiles()
    const texts = files.map(async (file) => {
      const pieces: Buffer[] = []
      for await (const piece of signatures.readContent(file)) pieces.push(piece)
      return [file.name, Buffer.concat(pieces).toString('latin1')]
    })
    return Object.fromEntries(await Promise.all(texts))
  }

  const one = toNdb('Feed.One', 'pattern of the feed')

  test('stores a file, counts it, and does nothing while it is unchanged', async () => {
    await add(publisher.serve('/plain.ndb', one), { licence: 'CC0' })
    const abandoned = join(dir, 'data', 'signatures', 'incoming', 'of-a-killed-process')
    mkdirSync(abandoned, { recursive: true })
    utimesSync(abandoned, 0, 0)
    const { state, source } = await update()
    assert.equal(state, 'changed')
    assert.ok(!existsSync(abandoned))
    assert.deepEqual(
      [source.signatures, source.error, source.testedFiles, source.held, source.licence],
      [1, null, 1, [], 'CC0'],
    )
    assert.deepEqual(await listContents(), { 'feed--plain.ndb': one })
    const [before] = await signatures.listFiles()
    const again = await update()
    assert.equal(again.state, 'unchanged')
    assert.equal(publisher.asked.at(-1)?.status, 304)
    assert.deepEqual(again.source.changedAt, source.changedAt)
    assert.ok(Number(again.source.checkedAt) > Number(source.checkedAt))
    assert.deepEqual(await signatures.listFiles(), [before])
    publisher.serve('/plain.ndb', one + toNdb('Feed.Two', 'another pattern'))
    const third = await update()
    assert.deepEqual([third.state, third.source.signatures], ['changed', 2])
    assert.notDeepEqual(await signatures.listFiles(), [before])
  })

  test('takes the signature files of a zip and of a tar.gz, and no kind that silences others', async () => {
    const rule = toYara('feed_rule', 'pattern of the rule')
    const zip = newZip([
      { name: 'set/a.ndb', data: Buffer.from(one) },
      { name: 'set/b.yar', data: Buffer.from(rule) },
      { name: 'set/ignore.ign2', data: Buffer.from('Eicar-Test-Signature\n') },
      { name: 'set/good.fp', data: Buffer.from(`${'0'.repeat(32)}:1:x\n`) },
      { name: 'README.md', data: Buffer.from('text') },
    ])
    await add(publisher.serve('/set.bin', zip))
    const { state, source } = await update()
    assert.equal(state, 'changed', source.error ?? '')
    assert.equal(source.signatures, 2)
    const stored = await listContents()
    assert.deepEqual(Object.values(stored).sort(), [one, rule])
    for (const name of Object.keys(stored)) assert.match(name, /^feed--[0-9a-f]{8}-[ab]\.(ndb|yar)$/)

    publisher.serve(
      '/set.bin',
      gzipSync(newTar(['repository-main/rules/c.yar', 'repository-main/x.sh'], Buffer.from(rule))),
    )
    const second = await update()
    assert.equal(second.state, 'changed', second.source.error ?? '')
    assert.deepEqual(Object.values(await listContents()), [rule])
  })

  test('keeps the old data, and says why, when the new is bad', async () => {
    const path = '/bad.ndb'
    await add(publisher.serve(path, one))
    assert.equal((await update()).state, 'changed')
    const before = await listContents()
    const zip = newZip([{ name: 'a.ndb', data: Buffer.from(one.repeat(1000)) }])
    const zeros = Buffer.alloc(3 * 1024 * 1024)
    const limits = { members: 10, bytes: 1024 * 1024 }
    const faults: [what: string, answer: Buffer | string | (() => void), expected: RegExp][] = [
      ['a page', '<html>not found</html>', /No file of the source can be used\. feed--bad\.ndb: \S/],
      ['comments alone', '# moved\n', /feed--bad\.ndb: has no signatures/],
      ['an empty member', newZip([{ name: 'a.ndb', data: Buffer.alloc(0) }]), /feed--a\.ndb: has no signatures/],
      ['reserved names', toNdb('Heuristics.Encrypted.X', 'any') + toNdb(' Heuristics.X', 'any'), /has no signatures/],
      [
        'a reserved name in the rest of a line',
        `Feed.A:0:*:${'61'.repeat(4090)}${toNdb('Heuristics.Encrypted.X', 'any')}`,
        /has a line that is longer than ClamAV reads/,
      ],
      ['rules without a rule', newZip([{ name: 'a.yar', data: Buffer.from('/* rule a */ ') }]), /has no rules/],
      [
        'a signature that matches a letter',
        toNdb('Feed.Letter', 'This letter'),
        /All signatures match known-good files: Feed\.Letter \(\S+letter\.txt\)/,
      ],
      ['larger than its limit', Buffer.alloc(5 * 1024 * 1024, 'x'), /larger than 4194304 bytes/],
      ['a cut zip', zip.subarray(0, zip.length / 2), /damaged or incomplete/],
      ['a cut gzip', gzipSync(one.repeat(1000)).subarray(0, 60), /damaged or incomplete/],
      ['a zip without signatures', newZip([{ name: 'a.txt', data: Buffer.from('x') }]), /no signature files/],
      ['a gzip bomb', gzipSync(zeros), /too many bytes/],
      ['a zip bomb', newZip([{ name: 'a.txt', data: zeros }]), /too many bytes/],
      ['a zip of many', newZip(Array.from({ length: 11 }, (_, i) => ({ name: `${i}.txt` }))), /too many members/],
      ['nothing', '', /sent no content/],
      [
        'cut by the server',
        () => publisher.answer(path, (_, response) => response.writeHead(200, { 'content-length': 99 }).end('Feed')),
        /closed the connection before|announced is not valid/,
      ],
      [
        'a redirect inward',
        () =>
          publisher.answer(path, (_, response) =>
            response.writeHead(302, { location: 'http://127.0.0.1:8099/x.ndb' }).end(),
          ),
        /redirect must not point to an address that is not public/,
      ],
      [
        'a hanging server',
        () => publisher.answer(path, (_, response) => response.writeHead(200).write('Feed')),
        /not complete within 0\.5 seconds/,
      ],
      ['missing', () => publisher.answer(path, (_, response) => response.writeHead(404).end()), /status 404/],
    ]
    for (const [what, answer, expected] of faults) {
      if (typeof answer === 'function') answer()
      else publisher.serve(path, answer)
      const { state, source } = await update(what.startsWith('a hanging') ? { downloadMs: 500 } : { limits })
      assert.equal(state, 'failed', what)
      assert.match(source.error ?? '', expected, what)
      assert.equal(source.signatures, 1, what)
      assert.deepEqual(await listContents(), before, what)
    }
    assert.deepEqual(readdirSync(join(dir, 'data', 'signatures', 'incoming')), [])
    publisher.serve(path, toNdb('Feed.Good', 'good again'))
    const { state, source } = await update()
    assert.deepEqual([state, source.error], ['changed', null])
  })

  test('keeps the previous version of a file that has lost its signatures', async () => {
    const two = toNdb('Feed.Two', 'another pattern')
    const toZip = (a: string, b: string) =>
      newZip([
        { name: 'a.ndb', data: Buffer.from(a) },
        { name: 'b.ndb', data: Buffer.from(b) },
      ])
    await add(publisher.serve('/lost.zip', toZip(one, one)))
    assert.equal((await update()).state, 'changed')
    publisher.serve('/lost.zip', toZip('', two))
    const { state, source } = await update()
    assert.deepEqual([state, source.error], ['changed', null])
    assert.deepEqual(source.refused, [{ file: 'feed--a.ndb', reason: 'has no signatures' }])
    assert.deepEqual(await listContents(), { 'feed--a.ndb': one, 'feed--b.ndb': two })
    const { validators } = (await sources.claim(60_000, 'feed')) ?? {}
    assert.deepEqual(validators, { etag: null, lastModified: null }, 'the next download is complete')
  })

  test('requires the checksum, given as a hash or as a list', async () => {
    const right = createHash('sha256').update(one).digest('hex')
    const wrong = '0'.repeat(64)
    const url = publisher.serve('/sums/sum.ndb', one)
    const list = (hash: string) => publisher.serve('/sums/SHA256SUMS', `${wrong}  other.ndb\n${hash} *./sum.ndb\n`)
    for (const [sha256, isRight] of [
      [right, true],
      [wrong, false],
      [list(right), true],
      [`${publisher.url}/sums/missing`, false],
    ] as const) {
      await sources.removeSource('feed')
      await add(url, { sha256 })
      const { state, source } = await update()
      assert.equal(state, isRight ? 'changed' : 'failed', `${sha256} ${source.error}`)
    }
    await sources.removeSource('feed')
    await add(url, { sha256: list(wrong) })
    assert.match((await update()).source.error ?? '', /The SHA-256 of the download is/)
    assert.deepEqual(await listContents(), {})
  })

  test('requires the minisign signature', async () => {
    const minisign = newMinisign()
    const content = Buffer.from(one)
    const url = publisher.serve('/signed.ndb', content)
    const cases: [signature: string, key: string, expected: RegExp | undefined][] = [
      [minisign.sign(content), minisign.key, undefined],
      [minisign.sign(content, 'Ed'), minisign.key, undefined],
      [minisign.sign(Buffer.from('other')), minisign.key, /does not belong/],
      [minisign.sign(content).replace('timestamp:1', 'timestamp:2'), minisign.key, /does not belong/],
      [minisign.sign(content), newMinisign().key, /does not belong/],
      ['nonsense', minisign.key, /cannot be read/],
    ]
    for (const [signature, minisignKey, expected] of cases) {
      publisher.serve('/signed.ndb.minisig', signature)
      await sources.removeSource('feed')
      await add(url, { minisignKey })
      const { state, source } = await update()
      assert.equal(state, expected === undefined ? 'changed' : 'failed', source.error ?? '')
      if (expected !== undefined) assert.match(source.error ?? '', expected)
    }
    publisher.answer('/signed.ndb.minisig', (_, response) => response.writeHead(404).end())
    assert.match((await update()).source.error ?? '', /signed\.ndb\.minisig: The host answered with status 404/)
  })

  test('holds back what matches a known-good file, and what is released no longer', async () => {
    const zip = newZip([
      {
        name: 'a.ndb',
        data: Buffer.from(`${one}${toNdb('Feed.Letter', 'This letter')}${toNdb('Feed.Good', 'to be good')}`),
      },
      {
        name: 'reserved.ndb',
        data: Buffer.from(`${toNdb('Heuristics.Encrypted.X', 'anything')}${toNdb('Feed.More', 'more')}`),
      },
      {
        name: 'b.yar',
        data: Buffer.from(`${toYara('bad_rule', 'known')}rule uses_it { condition: bad_rule and filesize < 3 }\n`),
      },
      { name: 'c.yar', data: Buffer.from(`/* */ rule one_line { strings: $a = "letter" condition: $a }\n`) },
      { name: 'd.yar', data: Buffer.from('rule broken { condition: nonsense }\n') },
    ])
    await add(publisher.serve('/held.zip', zip))
    const { state, source } = await update()
    assert.equal(state, 'changed', source.error ?? '')
    const letter = join(knownGood, 'letter.txt')
    assert.deepEqual(
      source.held.map(({ name, file }) => [name, file]).sort(),
      ['Feed.Good', 'Feed.Letter', 'bad_rule', 'one_line'].map((name) => [name, letter]),
    )
    assert.deepEqual(source.refused.map(({ file }) => file).sort(), ['feed--c.yar', 'feed--d.yar'])
    const stored = await listContents()
    assert.deepEqual(Object.keys(stored), ['feed--a.ndb', 'feed--b.yar', 'feed--reserved.ndb'])
    assert.equal(stored['feed--a.ndb'], one)
    assert.equal(stored['feed--reserved.ndb'], toNdb('Feed.More', 'more'))
    assert.match(stored['feed--b.yar'] ?? '', /^private rule bad_rule \{/)
    assert.equal(source.signatures, 3)

    assert.ok(await sources.releaseSignature('feed', 'Feed.Letter'))
    assert.ok(await sources.releaseSignature('feed', 'bad_rule'))
    const { source: released } = await update()
    assert.deepEqual(released.held.map(({ name }) => name).sort(), ['Feed.Good', 'one_line'])
    assert.match((await listContents())['feed--a.ndb'] ?? '', /Feed\.Letter/)
    assert.match((await listContents())['feed--b.yar'] ?? '', /^rule bad_rule \{/)
  })

  test('uses nothing that cannot be tried', async () => {
    await add(publisher.serve('/untried.ndb', one))
    const { state, source } = await update({ knownGoodDirs: [join(dir, 'missing')] })
    assert.equal(state, 'failed')
    assert.match(source.error ?? '', /no known-good files/)
    const empty = join(dir, 'empty')
    mkdirSync(empty)
    const missing = join(dir, 'missing')
    const failures = [
      [{}, { ...config, knownGoodDir: empty }, /ASSAY_KNOWN_GOOD_DIR is \S+empty, which has no file/],
      [{}, { ...config, knownGoodDir: missing }, /ASSAY_KNOWN_GOOD_DIR cannot be read/],
      [{ findClamd: () => undefined }, config, /clamd is not installed on this node/],
    ] as const
    for (const [more, used, expected] of failures) assert.match((await update(more, used)).source.error ?? '', expected)
    assert.deepEqual(await listContents(), {})
  })

  test('of a killed process is done by another', async () => {
    await add(publisher.serve('/lease.ndb', one))
    const held = await sources.claim(60_000)
    assert.ok(held)
    // The process was killed, and its lease has ended.
    await database.pool.query(`update signature_sources set leased_until = now() - interval '1 second'`)
    const other = await sources.claim(60_000)
    assert.ok(other)
    assert.equal((await newUpdate()(held, new AbortController().signal)).state, 'lost')
    assert.deepEqual(await listContents(), {})
    assert.equal((await newUpdate()(other, new AbortController().signal)).state, 'changed')
    assert.equal(await sources.claim(60_000), undefined, 'the next update is not due')
  })

  test('is done once by the workers of two nodes, and makes SHA-256 hashes known', async (t) => {
    const bad = createHash('sha256').update('bad content').digest('hex')
    await add(publisher.serve('/two.hdb', `${bad}:11:Feed.Bad\n`))
    const states: string[] = []
    let started = 0
    const open = (run: (claimed: ClaimedSource, signal: AbortSignal) => Promise<unknown>) => {
      const worker = openSourceWorker({
        store: makeSourceStore(database),
        async update(claimed, signal) {
          started++
          return run(claimed, signal)
        },
        log: silentLog,
        isOutage: () => false,
        everyMs: 50,
      })
      t.after(() => worker.close(0))
      return worker
    }
    const hanging = open(() => new Promise(() => {}))
    await waitFor(() => started === 1)
    // Closing does not wait for work that does not end, and leaves the source to other nodes.
    await hanging.close(10)
    const update = newUpdate()
    const run = async (claimed: ClaimedSource, signal: AbortSignal) => {
      states.push((await update(claimed, signal)).state)
    }
    for (let node = 0; node < 2; node++) open(run)
    await waitFor(() => states.length > 0)
    assert.deepEqual([states, started], [['changed'], 2])
    assert.equal(publisher.asked.filter(({ path }) => path === '/two.hdb').length, 1)
    const { rows } = await database.pool.query('select signature_file from revision_work')
    assert.deepEqual(rows, [{ signature_file: 'feed--two.hdb' }])
  })

  test('is given up when the service stops, and records nothing', async () => {
    publisher.answer('/slow.ndb', (_, response) => response.writeHead(200).write('Feed'))
    await add(`${publisher.url}/slow.ndb`)
    const claimed = await sources.claim(60_000)
    assert.ok(claimed)
    const stopping = new AbortController()
    const running = newUpdate()(claimed, stopping.signal)
    stopping.abort(new Error('stopping'))
    await assert.rejects(running, /stopping/)
    assert.equal((await sources.listSources())[0]?.attemptedAt, null)
    await sources.release([claimed.token])
    assert.ok(await sources.claim(60_000))
  })

  test('leaves the files of the operator and of the source to their commands', async () => {
    await add(publisher.serve('/own.ndb', one))
    await signatures.saveFiles([{ name: 'feed--own.ndb', read: async () => Buffer.from('x') }])
    assert.match((await update()).source.error ?? '', /You have added a signature file feed--own\.ndb/)
    assert.ok(await signatures.removeFile('feed--own.ndb'))
    assert.equal((await update()).state, 'changed')
    await assert.rejects(signatures.removeFile('feed--own.ndb'), /belongs to the source feed/)
    await assert.rejects(
      signatures.saveFiles([{ name: 'feed--own.ndb', read: async () => Buffer.from('x') }]),
      /belongs to the source feed/,
    )
    assert.ok(await sources.removeSource('feed'))
    assert.deepEqual(await listContents(), {})
    assert.equal(await sources.removeSource('feed'), false)
  })
})

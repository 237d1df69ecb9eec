import assert from 'node:assert/strict'
import { rmSync } from 'node:fs'
import { after, before, describe, test } from 'node:test'
import { EngineDown } from '../../src/domain/ports/engines.ts'
import { checkYaraFile } from '../../src/engines/yara/load-rules.ts'
import type { YaraEngine } from '../../src/engines/yara/yara-engine.ts'
import { waitFor } from '../support/wait-for.ts'
import { brokenRule, markerRule, noAbort, openTestYara, toContent, whyNot } from './yara-support.ts'

const fiveMegabytes = 5 * 1024 * 1024
const exactRule = `rule exact { condition: filesize == ${fiveMegabytes + 1} and uint8(${fiveMegabytes}) == 0x7a }`
const emptyRule = 'rule empty { condition: filesize == 0 }'

// Before the first test begins: the check starts a process, which a test would take for one of its own.
const whyNone = { libyara: await whyNot('libyara'), 'yara-x': await whyNot('yara-x') }

for (const backend of ['libyara', 'yara-x'] as const) {
  describe(`YARA with ${backend}`, { skip: whyNone[backend] }, () => {
    /** One engine for the tests that change nothing. Each rule matches content of one test only. */
    let engine: YaraEngine
    let close: () => Promise<void>
    before(async () => {
      const rules = { 'marker.yar': markerRule, 'exact.yar': exactRule, 'empty.yar': emptyRule }
      const t = {
        after(given: () => Promise<void>) {
          close = given
        },
      }
      engine = (await openTestYara(t, { backend, rules })).engine
    })
    after(() => close())

    test('a rule is found in small content, and nothing in content without it', async () => {
      const found = await engine.scan(toContent(Buffer.from('before assay-marker after')), noAbort)
      assert.deepEqual(found, { findings: ['marker'], doubts: [], suspectsContainer: false })
      const clean = await engine.scan(toContent(Buffer.from('nothing here')), noAbort)
      assert.deepEqual(clean, { findings: [], doubts: [], suspectsContainer: false })
    })

    test('a match across chunks of large content is found, at its end too', async () => {
      const bytes = Buffer.alloc(fiveMegabytes, 'lorem ipsum ')
      bytes.write('assay-marker', 65_536 * 3 - 5)
      assert.deepEqual((await engine.scan(toContent(bytes, { chunkBytes: 65_536 }), noAbort)).findings, ['marker'])
      const atEnd = Buffer.alloc(fiveMegabytes, 'lorem ipsum ')
      atEnd.write('assay-marker', fiveMegabytes - 12)
      assert.deepEqual((await engine.scan(toContent(atEnd, { chunkBytes: 1_000_000 }), noAbort)).findings, ['marker'])
    })

    test('the whole of large content is one buffer of its full length', async () => {
      const bytes = Buffer.alloc(fiveMegabytes + 1, 'a')
      bytes[fiveMegabytes] = 0x7a
      assert.deepEqual((await engine.scan(toContent(bytes, { chunkBytes: 70_001 }), noAbort)).findings, ['exact'])
    })

    test('content that is shorter or longer than it says has no result', async () => {
      const bytes = Buffer.alloc(200_000, 'x')
      for (const says of [200_001, 199_999]) {
        const lying = { ...toContent(bytes, { chunkBytes: 65_536 }), bytes: says }
        await assert.rejects(engine.scan(lying, noAbort), EngineDown)
      }
      await assert.rejects(engine.scan({ ...toContent(bytes), bytes: 200_001 }, noAbort), EngineDown)
      assert.deepEqual((await engine.scan(toContent(Buffer.from('assay-marker')), noAbort)).findings, ['marker'])
    })

    test('empty content is scanned', async () => {
      assert.deepEqual((await engine.scan(toContent(Buffer.alloc(0)), noAbort)).findings, ['empty'])
    })

    test('a broken file is refused by name and the others still match', async (t) => {
      const { engine, logged } = await openTestYara(t, {
        backend,
        rules: { 'a-broken.yar': brokenRule, 'marker.yara': markerRule, 'notes.txt': 'no rule' },
      })
      const [refused, ...rest] = engine.listRefused()
      assert.equal(refused?.file, 'a-broken.yar')
      assert.match(refused?.reason ?? '', /^line 1: .*nowhere/)
      assert.deepEqual(rest, [])
      assert.deepEqual((await engine.scan(toContent(Buffer.from('assay-marker')), noAbort)).findings, ['marker'])
      assert.equal(engine.findState()?.signatures, 1)
      assert.equal(logged.filter((line) => line.includes('a-broken.yar')).length, 1)
    })

    test('files are namespaces: names may repeat, private rules stay unseen, global ones hold for their file', async (t) => {
      const { engine } = await openTestYara(t, {
        backend,
        rules: {
          'a.yar': 'private rule helper { condition: true } rule same { condition: helper }',
          'b.yar': 'global rule large { condition: filesize > 10 } rule always { condition: true }',
          'c.yar': 'rule same { condition: filename == "" }',
        },
      })
      const small = await engine.scan(toContent(Buffer.from('x')), noAbort)
      assert.deepEqual(small.findings, ['same'])
      const large = await engine.scan(toContent(Buffer.from('x'.repeat(11))), noAbort)
      assert.deepEqual(large.findings.sort(), ['always', 'large', 'same'])
      assert.equal(engine.findState()?.signatures, 5)
    })

    test('rules cannot include other files', async (t) => {
      const { engine } = await openTestYara(t, {
        backend,
        rules: { 'peek.yar': `include "/etc/passwd"\n${markerRule}` },
      })
      assert.equal(engine.isActive(), false)
      assert.match(engine.listRefused()[0]?.reason ?? '', /includ/)
    })

    test('the state has version, rules and their age, and its verdictVersion follows the rules', async (t) => {
      const { engine, write } = await openTestYara(t, { backend, rules: { 'marker.yar': markerRule } })
      const before = engine.findState()
      assert.match(before?.version ?? '', backend === 'libyara' ? /^YARA .*libyara/ : /^YARA-X 1\./)
      assert.ok(before?.signaturesAt instanceof Date)
      write('other.yar', 'rule other { condition: false }')
      await engine.reload()
      const later = engine.findState()
      assert.equal(later?.signatures, 2)
      assert.notEqual(later?.verdictVersion, before?.verdictVersion)
    })

    test('one file can be checked before it is added', async (t) => {
      const { write } = await openTestYara(t, { backend, rules: {} })
      assert.equal(await checkYaraFile(write('good.yar', markerRule), { backend }), undefined)
      assert.match((await checkYaraFile(write('bad.yar', brokenRule), { backend })) ?? '', /nowhere/)
      assert.match((await checkYaraFile(write('none.yar', '// nothing'), { backend })) ?? '', /no rule/)
      assert.match((await checkYaraFile('/nowhere/x.yar', { backend })) ?? '', /does not exist/)
    })
  })
}

test('without rules the engine is inactive, runs nothing and finds nothing', async (t) => {
  const { engine, dir, pids } = await openTestYara(t, { rules: {} })
  assert.equal(engine.isActive(), false)
  assert.equal(engine.findState(), undefined)
  assert.deepEqual(pids(), [])
  assert.deepEqual((await engine.scan(toContent(Buffer.from('assay-marker')), noAbort)).findings, [])
  rmSync(dir, { recursive: true })
  await engine.reload()
  assert.equal(engine.isActive(), false)
})

test('new rules are loaded automatically, and removing the last one ends the processes', async (t) => {
  const { engine, write, remove, pids } = await openTestYara(t, { rules: {} })
  write('marker.yar', markerRule)
  await waitFor(() => engine.isActive())
  assert.deepEqual((await engine.scan(toContent(Buffer.from('assay-marker')), noAbort)).findings, ['marker'])
  remove('marker.yar')
  await waitFor(() => !engine.isActive())
  await waitFor(() => pids().length === 0)
})

test('shipped rules are used beside those of the operator', async (t) => {
  const { write } = await openTestYara(t, { rules: {} })
  const { engine } = await openTestYara(t, {
    rules: { 'marker.yar': markerRule },
    shipped: [write('marker.yar', 'rule shipped { condition: true }')],
  })
  const report = await engine.scan(toContent(Buffer.from('assay-marker')), noAbort)
  assert.deepEqual(report.findings.sort(), ['marker', 'shipped'])
})

import assert from 'node:assert/strict'
import { test } from 'node:test'
import { setImmediate } from 'node:timers/promises'
import type { Content } from '../../src/domain/content/content.ts'
import { type HashLists, makeMemberHashes, withHashLists } from '../../src/domain/knowledge/hash-lists.ts'
import { EngineDown, type Work } from '../../src/domain/ports/engines.ts'
import type { ActiveHashLists, HashVerdict, KnownHash, ListEntry } from '../../src/domain/ports/hash-list-store.ts'
import { type ScanOptions, type Verdict, withLists } from '../../src/domain/scans/scan.ts'

const content = { sha256: 'a'.repeat(64) } as Content
const options = { kind: 'malware' } as ScanOptions
const clean: Verdict = { status: 'clean', signals: [], metadata: {} }
const threat: Verdict = { status: 'threat', signals: ['Virus:Eicar'], metadata: {} }
const bad: KnownHash = { verdict: 'bad', name: 'Trojan.X', list: 'feed' }
const good: KnownHash = { verdict: 'good', name: null, list: 'ours' }

/** Applies lists with these verdicts, in which the content is known as given. */
async function apply(
  verdict: Verdict,
  verdicts: HashVerdict[],
  known?: KnownHash,
  kind: ScanOptions['kind'] = 'malware',
) {
  let lookups = 0
  const lists: HashLists = {
    findActive: () => ({ verdicts, version: '1' }),
    findHash: async () => {
      lookups++
      return known
    },
  }
  const found = await withHashLists(async () => verdict, lists)(content, { ...options, kind })
  return { ...found, lookups }
}

test('without lists, and for images, nothing is looked up', async () => {
  assert.deepEqual(await apply(clean, [], bad), { ...clean, lookups: 0 })
  assert.deepEqual(await apply(clean, ['bad'], bad, 'nsfw_image'), { ...clean, lookups: 0 })
})

test('a bad hash is a threat, beside the findings of the engines', async () => {
  const unknown = await apply(clean, ['bad'], bad)
  assert.deepEqual([unknown.status, unknown.signals, unknown.lookups], ['threat', ['Virus:Trojan.X'], 1])
  assert.deepEqual(unknown.metadata, { listed: 'Hash list feed', engines_status: 'clean' })
  assert.deepEqual((await apply(threat, ['bad'], bad)).signals, ['Virus:Trojan.X', 'Virus:Eicar'])
  const notRead: Verdict = { ...clean, status: 'error', signals: ['Error:EncryptedContent'] }
  assert.deepEqual((await apply(notRead, ['bad'], { ...bad, name: null })).signals, ['Virus:feed'])
})

test('a good hash clears a threat, and is looked up for nothing else', async () => {
  const cleared = await apply(threat, ['good'], good)
  assert.deepEqual([cleared.status, cleared.signals, cleared.metadata.engines_status], ['clean', [], 'threat'])
  assert.equal((await apply(clean, ['good'], good)).lookups, 0)
})

test('a good hash makes nothing clean that was not read', async () => {
  const doubts = ['Error:EncryptedContent']
  const half = await apply({ ...threat, doubts }, ['good'], good)
  assert.deepEqual([half.status, half.signals], ['error', doubts])
  const error: Verdict = { status: 'error', signals: doubts, metadata: {}, doubts }
  assert.equal((await apply(error, ['bad', 'good'], good)).status, 'error')
})

test('an allowed hash that a bad list names is clean only if the engines read all of it', async () => {
  const lists: HashLists = { findActive: () => ({ verdicts: ['bad'], version: '1' }), findHash: async () => bad }
  const allowed = { list: 'allow', matches: 'sha256', value: content.sha256, reason: 'checked' } as ListEntry
  const assess = (verdict: Verdict) =>
    withLists(
      withHashLists(async () => verdict, lists),
      () => [allowed],
    )(content, options)
  assert.equal((await assess(clean)).status, 'clean')
  const signals = ['Error:EncryptedContent']
  const error: Verdict = { status: 'error', signals, metadata: {} }
  for (const verdict of [error, { ...error, doubts: signals }, { ...threat, doubts: signals }]) {
    const found = await assess(verdict)
    assert.deepEqual([found.status, found.signals], ['error', signals])
    assert.equal(found.metadata.engines_status, verdict.status)
  }
})

test('a lookup that fails is never a verdict', async () => {
  const lists: HashLists = {
    findActive: () => ({ verdicts: ['bad'], version: '1' }),
    findHash: async () => {
      throw new Error('the database is gone')
    },
  }
  await assert.rejects(withHashLists(async () => clean, lists)(content, options), /the database is gone/)
  const { engine } = makeMemberHashes(lists)
  const place = { depth: 1, name: 'member' }
  await assert.rejects(engine.scan(content, {} as Work, place), EngineDown)
})

test('the lists that count are those at the end of the scan', async () => {
  const assess = (verdict: Verdict, known: KnownHash, before: ActiveHashLists, after: ActiveHashLists) => {
    let hasChanged = false
    const lists: HashLists = {
      findActive: () => (hasChanged ? after : before),
      findHash: async () => (hasChanged ? known : undefined),
    }
    const scan = async () => {
      hasChanged = true
      return verdict
    }
    return withHashLists(scan, lists)(content, options)
  }
  const none: ActiveHashLists = { verdicts: [], version: '' }
  const one: ActiveHashLists = { verdicts: ['bad'], version: '1' }
  assert.equal((await assess(clean, bad, none, one)).status, 'threat')
  assert.equal((await assess(clean, bad, one, { ...one, version: '1,2' })).status, 'threat')
  assert.equal((await assess(clean, bad, one, none)).status, 'clean')
  assert.equal((await assess(threat, good, none, { verdicts: ['good'], version: '3' })).status, 'clean')
})

test('a lookup that fails waits for the engines, which still read the content', async () => {
  const reading = Promise.withResolvers<Verdict>()
  const lists: HashLists = {
    findActive: () => ({ verdicts: ['bad'], version: '1' }),
    findHash: () => Promise.reject(new Error('the database is gone')),
  }
  let hasEnded = false
  const scan = withHashLists(() => reading.promise, lists)(content, options).finally(() => {
    hasEnded = true
  })
  const rejected = assert.rejects(scan, /the database is gone/)
  await setImmediate()
  assert.equal(hasEnded, false)
  reading.resolve(clean)
  await rejected
})

test('only members are looked up as an engine, and the version follows the lists', async () => {
  let version = '1'
  const lists: HashLists = { findActive: () => ({ verdicts: ['bad'], version }), findHash: async () => bad }
  const { engine, isActive } = makeMemberHashes(lists)
  assert.equal(isActive(), true)
  assert.deepEqual((await engine.scan(content, {} as Work, { depth: 0, name: '' })).findings, [])
  assert.deepEqual((await engine.scan(content, {} as Work, { depth: 1, name: '' })).findings, ['Trojan.X'])
  const before = engine.findState()?.verdictVersion
  version = '2'
  assert.notEqual(engine.findState()?.verdictVersion, before)
})

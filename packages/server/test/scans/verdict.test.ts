import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import type { Content } from '../../src/domain/content/content.ts'
import type { ListEntry } from '../../src/domain/ports/hash-list-store.ts'
import { makeVersionedCache, type Verdict, withLists } from '../../src/domain/scans/scan.ts'

describe('the allow and block lists', () => {
  const sha256 = 'a'.repeat(64)
  const options = { kind: 'malware' as const, contentName: null, flagsSexy: true, accountId: 'a', isTest: false }
  const entry = (list: 'allow' | 'block', matches: 'sha256' | 'signal', value: string): ListEntry => {
    return { id: '', list, matches, value, reason: 'because', createdBy: '', createdAt: new Date(), expiresAt: null }
  }
  const apply = (verdict: Partial<Verdict>, ...entries: ListEntry[]): Promise<Verdict> => {
    const assess = async (): Promise<Verdict> => ({ status: 'clean', signals: [], metadata: {}, ...verdict })
    return withLists(assess, () => entries)({ sha256 } as Content, options)
  }
  const allowed = entry('allow', 'sha256', sha256)
  const blocked = entry('block', 'sha256', sha256)
  const allowedA = entry('allow', 'signal', 'Virus:A')
  const encrypted = 'Error:EncryptedContent'
  const threat = (...signals: string[]) => ({ status: 'threat' as const, signals })
  const unscanned = { status: 'error' as const, signals: [encrypted] }
  const many = Array.from({ length: 50 }, (_, n) => `Virus:${n}`)

  const table: [what: string, Partial<Verdict>, ListEntry[], status: string, signals: string[]][] = [
    ['make allowed content clean', threat('Virus:A', 'Virus:B'), [allowed], 'clean', []],
    ['leave other content', threat('Virus:A'), [entry('allow', 'sha256', 'b'.repeat(64))], 'threat', ['Virus:A']],
    ['remove an allowed signal and keep the others', threat('Virus:A', 'Virus:B'), [allowedA], 'threat', ['Virus:B']],
    ['make content clean whose only signal is allowed', threat('Virus:A'), [allowedA], 'clean', []],
    [
      'never make content clean that was scanned in part',
      { ...threat('Virus:A'), doubts: [encrypted] },
      [allowedA],
      'error',
      [encrypted],
    ],
    [
      'never make allowed content clean that was scanned in part',
      { ...threat('Virus:A'), doubts: [encrypted] },
      [allowed],
      'error',
      [encrypted],
    ],
    [
      'never make content clean that has more signals than are listed',
      threat(...many),
      many.map((name) => entry('allow', 'signal', name)),
      'threat',
      many,
    ],
    ['never make an error clean by its content', unscanned, [allowed], 'error', [encrypted]],
    ['never make an error clean by its signal', unscanned, [entry('allow', 'signal', encrypted)], 'error', [encrypted]],
    ['make blocked content a threat, even if it is allowed too', {}, [allowed, blocked], 'threat', ['Virus:Blocked']],
    ['keep the signals of a blocked threat', threat('Virus:A'), [allowed, blocked], 'threat', ['Virus:A']],
    ['make a blocked error a threat', unscanned, [entry('block', 'signal', encrypted)], 'threat', ['Virus:Blocked']],
  ]
  for (const [what, verdict, entries, status, signals] of table) {
    test(what, async () => {
      const result = await apply(verdict, ...entries)
      assert.deepEqual([result.status, result.signals], [status, signals])
    })
  }

  test('give the reason of the entry', async () => {
    assert.equal((await apply(threat('Virus:A'), allowed)).metadata.listed, 'because')
    assert.equal((await apply({}, blocked)).metadata.listed, 'because')
  })

  test('name the signals that decided, unless the content did', async () => {
    assert.equal((await apply(threat('Virus:A'), allowedA)).metadata.listed_signals, '["Virus:A"]')
    const blockedError = await apply(unscanned, entry('block', 'signal', encrypted))
    assert.equal(blockedError.metadata.listed_signals, JSON.stringify([encrypted]))
    for (const result of [await apply(threat('Virus:A'), allowed, allowedA), await apply({}, blocked)])
      assert.equal(result.metadata.listed_signals, undefined)
  })
})

describe('the verdict cache', () => {
  const keyOf = (sha256: string, accountId = 'one account') => ({ accountId, sha256 })
  const [clean, threat] = [{ status: 'clean' }, { status: 'threat' }]

  test('returns an entry under its own version only', () => {
    const cache = makeVersionedCache({ entries: 10 })
    cache.set(keyOf('one'), 'version 1', clean)
    cache.set(keyOf('other'), 'version 1', threat)
    assert.equal(cache.find(keyOf('one'), 'version 1'), clean)
    assert.equal(cache.find(keyOf('other'), 'version 1'), threat)
    assert.equal(cache.find(keyOf('one'), 'version 2'), undefined)
    assert.equal(cache.find(keyOf('third'), 'version 1'), undefined)
    assert.equal(cache.find(keyOf('one', 'another account'), 'version 1'), undefined)
    cache.set(keyOf('one'), 'version 2', threat)
    assert.equal(cache.find(keyOf('one'), 'version 2'), threat)
    assert.equal(cache.find(keyOf('one'), 'version 1'), undefined)
  })

  test('drops the least recently used entry when it is full', () => {
    const cache = makeVersionedCache({ entries: 2 })
    cache.set(keyOf('one'), 'v', clean)
    cache.set(keyOf('two'), 'v', clean)
    cache.find(keyOf('one'), 'v')
    cache.set(keyOf('three'), 'v', clean)
    const kept = ['one', 'two', 'three'].filter((name) => cache.find(keyOf(name), 'v') !== undefined)
    assert.deepEqual(kept, ['one', 'three'])
  })

  test('without entries remembers nothing', () => {
    const cache = makeVersionedCache({ entries: 0 })
    cache.set(keyOf('one'), 'v', clean)
    assert.equal(cache.find(keyOf('one'), 'v'), undefined)
  })
})

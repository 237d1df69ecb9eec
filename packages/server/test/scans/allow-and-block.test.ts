import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import type { Content } from '../../src/domain/content/content.ts'
import type { ListEntry } from '../../src/domain/ports/list-store.ts'
import { type Verdict, withLists } from '../../src/domain/scans/verdict.ts'

const sha256 = 'a'.repeat(64)
const content = { sha256 } as Content
const asked = { kind: 'malware' as const, contentName: null, flagsSexy: true, isTest: false }

const entry = (list: 'allow' | 'block', matches: 'sha256' | 'signal', value: string): ListEntry => ({
  ...{ id: '', list, matches, value, reason: 'because', createdBy: '', createdAt: new Date(), expiresAt: null },
})
const ask = (found: Partial<Verdict>, ...entries: ListEntry[]) => {
  const assessment: Verdict = { status: 'clean', signals: [], metadata: {}, ...found }
  return withLists(
    async () => assessment,
    () => entries,
  )(content, asked)
}
const threat = (...names: string[]) => ({ status: 'threat' as const, signals: names })
const told = ({ status, signals }: Verdict) => [status, signals]

describe('what an operator allows or blocks', () => {
  test('allowed content is clean, and says why', async () => {
    const result = await ask(threat('Virus:A', 'Virus:B'), entry('allow', 'sha256', sha256))
    assert.deepEqual(told(result), ['clean', []])
    assert.equal(result.metadata.listed, 'because')
  })
  test('other content is not', async () => {
    assert.deepEqual(told(await ask(threat('Virus:A'), entry('allow', 'sha256', 'b'.repeat(64)))), [
      'threat',
      ['Virus:A'],
    ])
  })
  test('an allowed signal is taken away, and the others stay', async () => {
    const result = await ask(threat('Virus:A', 'Virus:B'), entry('allow', 'signal', 'Virus:A'))
    assert.deepEqual(told(result), ['threat', ['Virus:B']])
  })
  test('without a signal left it is clean', async () => {
    assert.deepEqual(told(await ask(threat('Virus:A'), entry('allow', 'signal', 'Virus:A'))), ['clean', []])
  })
  test('but not where something was not looked at', async () => {
    const found = { ...threat('Virus:A'), doubts: ['Error:EncryptedContent'] }
    const result = await ask(found, entry('allow', 'signal', 'Virus:A'))
    assert.deepEqual(told(result), ['error', ['Error:EncryptedContent']])
  })
  test('nor where there are more signals than are told', async () => {
    const names = Array.from({ length: 50 }, (_, n) => `Virus:${n}`)
    const result = await ask(threat(...names), ...names.map((name) => entry('allow', 'signal', name)))
    assert.equal(result.status, 'threat')
  })
  test('an error is never made clean', async () => {
    const found = { status: 'error' as const, signals: ['Error:EncryptedContent'] }
    for (const list of [entry('allow', 'sha256', sha256), entry('allow', 'signal', 'Error:EncryptedContent')]) {
      assert.deepEqual(told(await ask(found, list)), ['error', ['Error:EncryptedContent']])
    }
  })
  test('blocked content is a threat, whatever else is said of it', async () => {
    const both = [entry('allow', 'sha256', sha256), entry('block', 'sha256', sha256)]
    assert.deepEqual(told(await ask({}, ...both)), ['threat', ['Virus:Blocked']])
    assert.deepEqual(told(await ask(threat('Virus:A'), ...both)), ['threat', ['Virus:A']])
  })
  test('a blocked reason makes a threat of an error', async () => {
    const found = { status: 'error' as const, signals: ['Error:EncryptedContent'] }
    const result = await ask(found, entry('block', 'signal', 'Error:EncryptedContent'))
    assert.deepEqual(told(result), ['threat', ['Virus:Blocked']])
  })
})

import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { Problem } from '../../src/domain/problem.ts'
import type { FinalResult } from '../../src/domain/scans/scan.ts'
import {
  distrustDegraded,
  findSharedDegradation,
  findSignatureFault,
  makeDegradation,
  withRefusal,
} from '../../src/domain/scans/scanner.ts'
import { newContent } from './scan-support.ts'

const now = new Date('2026-11-16T12:00:00Z')
const dayMs = 86_400_000

describe('official databases', () => {
  const find = (builtAt: string | undefined, maxAge: number | 'off' = 7 * dayMs) =>
    findSignatureFault({
      builtAt: builtAt === undefined ? undefined : new Date(builtAt),
      maxAge,
      now,
      remedy: 'run freshclam',
    })

  test('that are missing or older than the limit are named in one sentence with what to do', () => {
    assert.equal(
      find(undefined),
      "ClamAV's official databases are missing, so most known malware is not found: run freshclam.",
    )
    assert.equal(
      find('2026-11-07T11:00:00Z'),
      "ClamAV's official databases are 9 days old, so recent malware is not found: run freshclam.",
    )
    assert.match(find('2026-11-16T02:00:00Z', 3_600_000) ?? '', /are 10 hours old/)
  })

  test('that are young enough, also by a clock ahead of ours, are no fault', () => {
    for (const builtAt of ['2026-11-09T12:00:00Z', '2026-11-16T11:00:00Z', '2026-11-17T00:00:00Z'])
      assert.equal(find(builtAt), undefined)
  })

  test('are not checked with ASSAY_SIGNATURE_MAX_AGE=off', () => {
    for (const builtAt of [undefined, '2020-01-01T00:00:00Z']) assert.equal(find(builtAt, 'off'), undefined)
  })
})

describe('a degraded installation', () => {
  const find = () => 'The databases are missing: run freshclam.'
  const result: FinalResult = {
    status: 'clean',
    signals: [],
    metadata: null,
    contentLength: 1,
    contentType: 'text/plain',
  }
  const scanner = { scanContent: async () => result, scanUrl: async () => result }
  const options = { contentName: null, flagsSexy: false, accountId: null, isTest: false }
  const url = { ...options, accountId: 'a', mode: 'sync' as const, signal: new AbortController().signal }

  test('refuses malware scans with the reason, and no image scans, if the operator chose so', async () => {
    const refusing = withRefusal(scanner, makeDegradation({ find, whenDegraded: 'refuse' }))
    const isRefusal = (error: unknown) => {
      assert(error instanceof Problem && error.refusal.kind === 'degraded')
      assert.equal(error.refusal.detail, 'The databases are missing: run freshclam. Nothing was charged.')
      return true
    }
    await assert.rejects(refusing.scanContent(newContent('x'), { ...options, kind: 'malware' }), isRefusal)
    await assert.rejects(refusing.scanUrl('http://x.test/', { ...url, kind: 'malware' }), isRefusal)
    assert.equal(await refusing.scanContent(newContent('x'), { ...options, kind: 'nsfw_image' }), result)
  })

  test('accepts malware scans by default, and as soon as nothing is missing', async () => {
    const flagging = makeDegradation({ find, whenDegraded: 'flag' })
    const complete = makeDegradation({ find: () => undefined, whenDegraded: 'refuse' })
    for (const degradation of [flagging, complete]) {
      const accepting = withRefusal(scanner, degradation)
      assert.equal(await accepting.scanContent(newContent('x'), { ...options, kind: 'malware' }), result)
    }
  })

  test('has no clean content for listeners, but its threats and errors stay', () => {
    const degraded = { ...result, metadata: { degraded: find() } }
    assert.deepEqual(distrustDegraded(degraded), { ...degraded, status: 'error', signals: ['Error:Degraded'] })
    const threat = { ...degraded, status: 'threat' as const, signals: ['Virus:X'] }
    assert.equal(distrustDegraded(result), result)
    assert.equal(distrustDegraded(threat), threat)
  })
})

test('a node without engines is degraded when every live worker is', () => {
  const newNode = (degraded?: string, change = {}) => ({
    roles: ['worker'],
    isAlive: true,
    engines: [
      { name: 'ClamAV', version: '1', signaturesAt: null, degraded },
      { name: 'NSFW', version: '1', signaturesAt: null },
    ],
    ...change,
  })
  const api = { ...newNode(), roles: ['api'], engines: [] }
  const silent = newNode(undefined, { isAlive: false })
  assert.equal(findSharedDegradation([api, newNode('First.'), silent, newNode('Second.')]), 'First.')
  assert.equal(findSharedDegradation([newNode('First.'), newNode()]), undefined)
  assert.equal(findSharedDegradation([api, silent]), undefined)
})

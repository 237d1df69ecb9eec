import assert from 'node:assert/strict'
import { test } from 'node:test'
import { decideRevision, makeRevisionBody } from '../../src/domain/knowledge/hash-lists.ts'
import type { KnownResult, RevisedStatus } from '../../src/domain/ports/revision-store.ts'

const known = (verdict: 'bad' | 'good') => ({ verdict, name: 'Trojan.X', list: 'feed' })

type Change = Partial<KnownResult> & { engines?: RevisedStatus; metadata?: Record<string, string> }

function toResult(status: RevisedStatus, change: Change = {}): KnownResult {
  const { engines, metadata: more, ...rest } = change
  const metadata: Record<string, string> = engines === undefined ? { ...more } : { engines_status: engines, ...more }
  const at = new Date('2026-01-01T00:00:00Z')
  const scan = {
    id: '0199a3c5-52f1-7c39-8f0e-6f1d5d0f6a3b',
    kind: 'malware' as const,
    status,
    contentLength: 1,
    contentType: 'text/plain',
    contentName: null,
    signals: [],
    metadata,
    createdAt: at,
    completedAt: at,
  }
  const knowledge = {
    revisedStatus: null,
    blocked: null,
    allowed: null,
    known: null,
    signature: null,
    revisionUrl: null,
  }
  return { scan, accountId: 'a', ...knowledge, ...rest }
}

const notScanned = { not_scanned: 'Error:EncryptedContent' }
const bySignal = (...signals: string[]) => ({ listed_signals: JSON.stringify(signals) })

const cases: [string, KnownResult, RevisedStatus | undefined][] = [
  ['a clean result of a bad hash', toResult('clean', { known: known('bad') }), 'threat'],
  ['an error of a bad hash', toResult('error', { known: known('bad') }), 'threat'],
  ['a threat of a bad hash', toResult('threat', { known: known('bad') }), undefined],
  ['a revised result of a bad hash', toResult('clean', { known: known('bad'), revisedStatus: 'threat' }), undefined],
  ['a threat of a good hash', toResult('threat', { known: known('good') }), 'clean'],
  ['an error of a good hash', toResult('error', { known: known('good') }), undefined],
  ['an error that a good hash decided', toResult('error', { known: known('good'), engines: 'threat' }), undefined],
  ['a result that nothing names any more', toResult('clean', { revisedStatus: 'threat' }), 'clean'],
  ['a threat that only a removed list decided', toResult('threat', { engines: 'clean' }), 'clean'],
  ['a threat of a list, with content that was not read', toResult('threat', { engines: 'error' }), 'error'],
  ['a clean result that only a removed entry allowed', toResult('clean', { engines: 'threat' }), 'threat'],
  ['a threat of the engines without any list', toResult('threat'), undefined],
  ['a blocked hash that is also allowed', toResult('clean', { blocked: 'x', allowed: 'y' }), 'threat'],
  ['an allowed hash that a list names', toResult('threat', { allowed: 'y', known: known('bad') }), 'clean'],
  [
    'a threat of a good hash, read in part',
    toResult('threat', { known: known('good'), metadata: notScanned }),
    'error',
  ],
  ['an allowed threat, read in part', toResult('threat', { allowed: 'y', metadata: notScanned }), 'error'],
  ['a clean result of a signature', toResult('clean', { signature: known('bad') }), 'threat'],
  ['a good hash of a signature', toResult('threat', { known: known('good'), signature: known('bad') }), 'clean'],
  [
    'a result of a signature that a good hash made clean',
    toResult('clean', { engines: 'threat', known: known('good'), signature: known('bad') }),
    undefined,
  ],
  [
    'a good hash of a signature, with content that was not read',
    toResult('error', { known: known('good'), signature: known('bad') }),
    undefined,
  ],
  [
    'a result that an entry for a signal cleared, without any list',
    toResult('clean', { engines: 'threat', metadata: bySignal('Virus:Eicar') }),
    undefined,
  ],
  [
    'a result that an entry for the signal of the list cleared',
    toResult('clean', { engines: 'clean', known: known('bad'), metadata: bySignal('Virus:Trojan.X') }),
    undefined,
  ],
  [
    'a result that an entry for the signal of the signature cleared',
    toResult('clean', { engines: 'threat', signature: known('bad'), metadata: bySignal('Virus:Trojan.X') }),
    undefined,
  ],
  [
    'a bad hash of a result that an entry for another signal cleared',
    toResult('clean', { engines: 'threat', known: known('bad'), metadata: bySignal('Virus:Eicar') }),
    'threat',
  ],
  [
    'an error that an entry for its signal blocked, without any list',
    toResult('threat', { engines: 'error', metadata: bySignal('Error:EncryptedContent') }),
    undefined,
  ],
  ['an allowed error', toResult('error', { allowed: 'y', known: known('bad') }), undefined],
]

for (const [about, result, status] of cases) {
  test(`${about}: ${status === undefined ? 'no revision' : `now ${status}`}`, () => {
    assert.equal(decideRevision(result)?.status, status)
  })
}

test('the webhook has the form of a result, with its type and the revision in the metadata', () => {
  const result = toResult('clean', { known: known('bad') })
  const revision = decideRevision(result)
  assert(revision)
  const body = JSON.parse(makeRevisionBody(result, revision, new Date('2026-02-01T00:00:00Z')))
  assert.equal(body.type, 'scan.revised')
  assert.equal(body.status, 'clean')
  assert.deepEqual(body.metadata, {
    revised_status: 'threat',
    revised_at: '2026-02-01T00:00:00.000Z',
    revised_reason: 'Hash list feed: Virus:Trojan.X',
  })
})

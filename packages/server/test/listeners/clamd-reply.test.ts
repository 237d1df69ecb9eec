import assert from 'node:assert/strict'
import { test } from 'node:test'
import { Problem, type Refusal } from '../../src/domain/problem.ts'
import { toFailureReply, toScanReply } from '../../src/listeners/clamd/serve-clamd.ts'

test('verdicts are the very lines of clamd', () => {
  assert.equal(toScanReply({ status: 'clean', signals: [] }), 'stream: OK')
  const threat = { status: 'threat' as const, signals: ['Virus:Eicar-Test-Signature', 'Virus:Other'] }
  assert.equal(toScanReply(threat), 'stream: Eicar-Test-Signature FOUND')
  // Nothing was sent, so nothing can be wrong with it; clamd says so, too.
  assert.equal(toScanReply(undefined), 'stream: OK')
})

test('a name cannot end its line or begin another', () => {
  const threat = { status: 'threat' as const, signals: ['Virus:a\nstream: OK\0 é'] }
  assert.equal(toScanReply(threat), 'stream: a_stream:_OK___ FOUND')
  assert.equal(toScanReply({ status: 'threat', signals: [] }), 'stream: unnamed FOUND')
})

test('what was not scanned is an error that nobody can take for a verdict', () => {
  const refusals: Refusal[] = [
    { kind: 'unauthenticated' },
    { kind: 'rate-limited', retryAfterSeconds: 7 },
    { kind: 'out-of-credit' },
    { kind: 'overloaded', retryAfterSeconds: 5 },
    { kind: 'unavailable', retryAfterSeconds: 5 },
    { kind: 'storage-full', retryAfterSeconds: 30 },
    { kind: 'outcome-unknown' },
    { kind: 'engine-unavailable', detail: 'away' },
    { kind: 'content-too-large', detail: 'large' },
    { kind: 'validation', errors: {} },
  ]
  const lines = [
    ...refusals.map((refusal) => toFailureReply(new Problem(refusal))),
    toFailureReply(new Error('stream: OK')),
    ...['EncryptedContent', 'UnsupportedContainer', 'ScanLimitExceeded'].map((doubt) =>
      toScanReply({ status: 'error', signals: [`Error:${doubt}`] }),
    ),
    toScanReply({ status: 'error', signals: null }),
    toScanReply({ status: 'pending', signals: null }),
  ]
  for (const line of lines) {
    assert.match(line, / ERROR$/)
    assert.doesNotMatch(line, /ok|found/i)
  }
  assert(lines.includes('INSTREAM size limit exceeded. ERROR'))
})

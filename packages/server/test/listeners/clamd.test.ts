import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { Problem, type Refusal } from '../../src/domain/problem.ts'
import { toClamdReply, toErrorVerdict, toVerdict } from '../../src/listeners/listener-scan.ts'
import { type ClamdEvent, newClamdParser } from '../../src/listeners/serve-clamd.ts'
import { everySplit, newRandom, spoil, toRandomPieces } from './splits.ts'

/** Parses the pieces and joins consecutive content events, so that the result does not depend on the cuts. */
function parse(pieces: Buffer[]): ClamdEvent[] {
  const parser = newClamdParser()
  const events: ClamdEvent[] = []
  for (const piece of pieces) {
    for (const event of parser.push(piece)) {
      const last = events.at(-1)
      if (event.kind === 'too-long') return [...events, event]
      if (event.kind !== 'content') events.push(event)
      else if (last?.kind === 'content') last.bytes = Buffer.concat([last.bytes, event.bytes])
      else events.push({ kind: 'content', bytes: Buffer.from(event.bytes) })
    }
  }
  return events
}

const toChunk = (text: string) => {
  const length = Buffer.alloc(4)
  length.writeUInt32BE(Buffer.byteLength(text))
  return Buffer.concat([length, Buffer.from(text)])
}
const command = (text: string, end: '\0' | '\n', framed = true) => ({ kind: 'command' as const, text, framed, end })
const content = (text: string) => ({ kind: 'content' as const, bytes: Buffer.from(text) })
const ended = { kind: 'content-end' as const }

const session = Buffer.concat([
  Buffer.from('zIDSESSION\0nPING\nzINSTREAM\0'),
  toChunk('hello '),
  toChunk('zINSTREAM\0'),
  toChunk(''),
  Buffer.from('INSTREAM\r\n'),
  toChunk(''),
  Buffer.from('VERSION\nzEND\0'),
])

describe('the parser of clamd commands', () => {
  test('finds the same events wherever the stream is cut', () => {
    for (const pieces of everySplit(session)) {
      assert.deepEqual(parse(pieces), [
        command('IDSESSION', '\0'),
        command('PING', '\n'),
        command('INSTREAM', '\0'),
        content('hello zINSTREAM\0'),
        ended,
        command('INSTREAM', '\n', false),
        ended,
        command('VERSION', '\n', false),
        command('END', '\0'),
      ])
    }
  })

  test('gives up a command that is too long', () => {
    for (const start of ['z', 'n', '']) {
      const endless = Buffer.from(start + 'x'.repeat(5000))
      const tooLong = { kind: 'too-long', end: start === 'z' ? '\0' : '\n' }
      assert.deepEqual(parse([endless]), [tooLong])
      assert.deepEqual(parse([...endless].map((byte) => Buffer.of(byte))), [tooLong])
    }
  })

  test('accepts PING and VERSION without terminator if nothing follows', () => {
    for (const text of ['PING', 'VERSION']) {
      const parser = newClamdParser()
      assert.deepEqual([...parser.push(Buffer.from(text))], [])
      assert.deepEqual(parser.takeBare(), command(text, '\n', false))
      assert.equal(parser.takeBare(), undefined)
    }
    for (const text of ['PIN', 'PINGS', 'zPING', 'nPING', 'INSTREAM', 'PING\n', 'INSTREAM\n', 'PING\nx']) {
      const parser = newClamdParser()
      for (const _event of parser.push(Buffer.from(text)));
      assert.equal(parser.takeBare(), undefined, text)
    }
  })

  test('passes content on without gathering it', () => {
    const parser = newClamdParser()
    assert.deepEqual([...parser.push(Buffer.from('zINSTREAM\0\xff\xff\xff\xff', 'latin1'))].length, 1)
    for (let n = 0; n < 100; n++) {
      assert.deepEqual([...parser.push(Buffer.alloc(1000))], [{ kind: 'content', bytes: Buffer.alloc(1000) }])
    }
  })

  test('finds the same events in damaged streams wherever they are cut', () => {
    const random = newRandom(7)
    for (let round = 0; round < 800; round++) {
      const bytes = spoil(session, random)
      assert.deepEqual(parse(toRandomPieces(bytes, random)), parse([bytes]), bytes.toString('latin1'))
    }
  })
})

const toScanReply = (status: 'clean' | 'threat' | 'error' | 'pending', signals: string[] | null) =>
  toClamdReply(toVerdict({ status, signals }), 'error')

test('verdicts are worded as clamd words them', () => {
  assert.equal(toScanReply('clean', []), 'stream: OK')
  const threat = toScanReply('threat', ['Virus:Eicar-Test-Signature', 'Virus:Other'])
  assert.equal(threat, 'stream: Eicar-Test-Signature FOUND')
  // clamd, too, replies OK to an empty stream.
  assert.equal(toClamdReply(toVerdict(undefined), 'error'), 'stream: OK')
})

test('the name of a signature cannot end or divide the line of a reply', () => {
  assert.equal(toScanReply('threat', ['Virus:a\nstream: OK\0 é']), 'stream: a_stream__OK___ FOUND')
  for (const signals of [[], ['Virus:']]) assert.equal(toScanReply('threat', signals), 'stream: Unknown FOUND')
})

test('content that could not be scanned is FOUND with the reason', () => {
  for (const doubt of ['EncryptedContent', 'UnsupportedContainer', 'ScanLimitExceeded']) {
    assert.equal(toScanReply('error', [`Error:${doubt}`, 'Error:Other']), `stream: Assay.NotScanned.${doubt} FOUND`)
  }
  assert.equal(toScanReply('error', null), 'stream: Assay.NotScanned.Unknown FOUND')
  assert.equal(toScanReply('pending', null), 'stream: Assay.NotScanned.Unknown FOUND')
  const tooLarge = toErrorVerdict(new Problem({ kind: 'content-too-large', detail: 'large' }))
  assert.equal(toClamdReply(tooLarge, 'error'), 'stream: Assay.NotScanned.ContentTooLarge FOUND')
})

const failures: [refusal: Refusal | undefined, name: string][] = [
  [{ kind: 'unauthenticated' }, 'InvalidKey'],
  [{ kind: 'rate-limited', retryAfterSeconds: 7 }, 'RateLimited'],
  [{ kind: 'out-of-credit' }, 'OutOfCredit'],
  [{ kind: 'overloaded', retryAfterSeconds: 5 }, 'Overloaded'],
  [{ kind: 'unavailable', retryAfterSeconds: 5 }, 'ServiceUnavailable'],
  [{ kind: 'storage-full', retryAfterSeconds: 30 }, 'StorageFull'],
  [{ kind: 'outcome-unknown' }, 'ResultUnknown'],
  [{ kind: 'engine-unavailable', detail: 'away' }, 'EngineFailed'],
  [{ kind: 'validation', errors: {} }, 'Refused'],
  [undefined, 'InternalError'],
]

test('a failure is an ERROR without the letters of OK and FOUND, or FOUND by the setting', () => {
  for (const [refusal, name] of failures) {
    const verdict = toErrorVerdict(refusal === undefined ? new Error('stream: OK') : new Problem(refusal))
    const line = toClamdReply(verdict, 'error')
    assert.match(line, /^stream: [^:]* ERROR$/)
    assert.doesNotMatch(line, /ok|found/i)
    assert.equal(toClamdReply(verdict, 'found'), `stream: Assay.NotScanned.${name} FOUND`)
  }
})

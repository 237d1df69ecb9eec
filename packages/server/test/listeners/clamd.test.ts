import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { Problem, type Refusal } from '../../src/domain/problem.ts'
import { type ClamdEvent, newClamdParser } from '../../src/listeners/clamd/clamd-parser.ts'
import { toFailureReply, toScanReply } from '../../src/listeners/clamd/serve-clamd.ts'
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
      assert.deepEqual(parse([endless]), [{ kind: 'too-long' }])
      assert.deepEqual(parse([...endless].map((byte) => Buffer.of(byte))), [{ kind: 'too-long' }])
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
    for (let round = 0; round < 3000; round++) {
      const bytes = spoil(session, random)
      assert.deepEqual(parse(toRandomPieces(bytes, random)), parse([bytes]), bytes.toString('latin1'))
    }
  })
})

test('verdicts are worded as clamd words them', () => {
  assert.equal(toScanReply({ status: 'clean', signals: [] }), 'stream: OK')
  const threat = { status: 'threat' as const, signals: ['Virus:Eicar-Test-Signature', 'Virus:Other'] }
  assert.equal(toScanReply(threat), 'stream: Eicar-Test-Signature FOUND')
  // clamd, too, replies OK to an empty stream.
  assert.equal(toScanReply(undefined), 'stream: OK')
})

test('the name of a signature cannot end the line of a reply', () => {
  const threat = { status: 'threat' as const, signals: ['Virus:a\nstream: OK\0 é'] }
  assert.equal(toScanReply(threat), 'stream: a_stream:_OK___ FOUND')
  assert.equal(toScanReply({ status: 'threat', signals: [] }), 'stream: unnamed FOUND')
})

test('a scan without a verdict gets an ERROR without the letters of OK and FOUND', () => {
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

import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { type ClamdEvent, newClamdParser } from '../../src/listeners/clamd/clamd-parser.ts'
import { everySplit, newRandom, spoil, toRandomPieces } from './splits.ts'

/** Pieces of content that follow each other are one: where they were cut is nobody's business. */
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

describe('what a client of clamd sends', () => {
  test('is read alike however it is cut', () => {
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

  test('a command without an end is given up, however it comes', () => {
    for (const start of ['z', 'n', '']) {
      const endless = Buffer.from(start + 'x'.repeat(5000))
      assert.deepEqual(parse([endless]), [{ kind: 'too-long' }])
      assert.deepEqual(parse([...endless].map((byte) => Buffer.of(byte))), [{ kind: 'too-long' }])
    }
  })

  test('PING and VERSION need no end, when nothing else is there', () => {
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

  test('content is handed on as it comes and not gathered', () => {
    const parser = newClamdParser()
    assert.deepEqual([...parser.push(Buffer.from('zINSTREAM\0\xff\xff\xff\xff', 'latin1'))].length, 1)
    for (let n = 0; n < 100; n++) {
      assert.deepEqual([...parser.push(Buffer.alloc(1000))], [{ kind: 'content', bytes: Buffer.alloc(1000) }])
    }
  })

  test('whatever it is, cutting it changes nothing', () => {
    const random = newRandom(7)
    for (let round = 0; round < 3000; round++) {
      const bytes = spoil(session, random)
      assert.deepEqual(parse(toRandomPieces(bytes, random)), parse([bytes]), bytes.toString('latin1'))
    }
  })
})

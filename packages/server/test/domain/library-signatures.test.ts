import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { test } from 'node:test'
import { fileTypeFromBuffer } from 'file-type'
import { mayKnow } from '../../src/domain/content/media-type.ts'

type Signature = { at: number; bytes: Buffer }

/** Content that no signature is in. */
const filler = 0x55
const withBytes = (signatures: Signature[]) => {
  const head = Buffer.alloc(33_000, filler)
  for (const { at, bytes } of signatures) bytes.copy(head, at)
  return head
}
const signature = (at: number, text: string): Signature => ({ at, bytes: Buffer.from(text, 'latin1') })

/** The comparisons in the source of the library: `this.check([0x1F, 0x8B], {offset: 2})`, `this.checkString('ID3')`. */
function listComparisons(): Signature[] {
  const source = readFileSync(new URL(import.meta.resolve('file-type')), 'utf8')
  const pattern = /this\.check(?:String)?\((?:\[([^\]]*)\]|'((?:[^'\\]|\\.)*)')(?:, \{(?:offset: ([\d_]+))?[^}]*\})?\)/g
  return [...source.matchAll(pattern)].map(([, numbers, string = '', at = '0']) => ({
    at: Number(at),
    bytes:
      numbers === undefined
        ? Buffer.from(JSON.parse(`"${string.replaceAll('\\0', '\\u0000')}"`), 'latin1')
        : Buffer.from(numbers.split(',').map(Number)),
  }))
}

test('every signature of the library file-type passes the comparison of two bytes', async () => {
  const comparisons = listComparisons()
  assert.ok(comparisons.length > 150, `${comparisons.length} comparisons were found in the source`)
  for (const comparison of comparisons) {
    const { at, bytes } = comparison
    // A single byte at the beginning is compared together with another one further in.
    if (at === 0 && bytes.length > 1) assert.ok(mayKnow(withBytes([comparison])), bytes.toString('hex'))
    const head = withBytes([comparison])
    if ((await fileTypeFromBuffer(head)) !== undefined) assert.ok(mayKnow(head), `${at} ${bytes.toString('hex')}`)
  }
  // Signatures of several parts. A version of the library that looks at other places must be compared with the table.
  const places = [...new Set(comparisons.map(({ at }) => at))].sort((a, b) => a - b)
  assert.deepEqual(places, [0, 1, 2, 3, 4, 6, 7, 8, 12, 14, 34, 36, 44, 60, 128, 188, 196, 257, 262])
  const parts: Signature[][] = [
    [signature(0, 'CWS')],
    [signature(0, 'FWS')],
    [signature(7, '**ACE'), signature(12, '**')],
    [signature(8, '\0\0\x01'), signature(34, 'LP')],
    [signature(0, 'G'), signature(188, 'G')],
    [signature(4, 'G'), signature(196, 'G')],
    [signature(257, 'ustar\0')],
    [signature(32_769, 'CD001')],
    ...[0xe2, 0xf3, 0xfb, 0xff].map((byte) => [{ at: 0, bytes: Buffer.from([0xff, byte, 0x90, 0x64]) }]),
  ]
  for (const part of parts) {
    const head = withBytes(part)
    assert.ok(mayKnow(head), JSON.stringify(part))
  }
  assert.equal(mayKnow(withBytes([])), false)
  assert.equal(mayKnow(withBytes([signature(0, 'the order of last week')])), false)
})

import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { hasEncoded } from '../../../src/domain/content/encoded-text.ts'
import { hexTextReader } from '../../../src/engines/unpack/child/readers/hex-text.ts'
import { hasMember, lacks, run, tryReader } from './read-with.ts'
import { fuzzReader } from './reader-support.ts'

const payload = Buffer.from(Array.from({ length: 400 }, (_, i) => (i * 7) % 256))
const hex = payload.toString('hex')
const lines = hex.replace(/.{60}/g, '$&\n')
const escapeWith = (write: (byte: number) => string) => [...payload].map(write).join('')
const escaped = escapeWith((byte) => `\\x${byte.toString(16).padStart(2, '0')}`)
/** Records of Motorola, with addresses of 16, 24 and 32 bits. */
const toRecords = (type: '1' | '2' | '3', addressBytes: number) =>
  hex.replace(/.{1,64}/g, (data, at: number) => {
    const address = (at / 2).toString(16).padStart(2 * addressBytes, '0')
    const body = Buffer.from(
      `${(data.length / 2 + addressBytes + 1).toString(16).padStart(2, '0')}${address}${data}`,
      'hex',
    )
    const checksum = ~body.reduce((sum, byte) => sum + byte, 0) & 255
    return `S${type}${body.toString('hex')}${checksum.toString(16).padStart(2, '0')}\r\n`
  })
const text = 'A line of text, which a bad decade added.\n'.repeat(50)

describe('bytes that a text writes as digits are given', () => {
  const forms: Record<string, string> = {
    'without anything else': hex,
    'in lines': lines,
    'in short lines': hex.replace(/.{8}/g, '$&\n'),
    'in upper case': hex.toUpperCase(),
    'in groups': `${text}${hex.replace(/../g, '$& ')}\n${text}`,
    'in a here-document': `#!/bin/sh\nxxd -r -p > a <<END\n${lines}\nEND\n`,
    'in a command': `#!/bin/sh\necho ${hex} | xxd -r -p > a\n`,
    'in a string': `a = bytes.fromhex("${hex}")\n`,
    'in a string of several lines': `a = bytes.fromhex("""${lines}""")\n`,
    'as escapes': `${text}a = b"${escaped}"\n`,
    'as escapes in several strings': `a = "${escaped.replace(/.{64}/g, '$&"\n "')}";\n`,
    'as escapes of characters': `a = '${escapeWith((byte) => `\\u00${byte.toString(16).padStart(2, '0')}`)}'\n`,
    'in a statement for a database': `${text}insert into a values (1, 0x${hex}, 'b');\n`,
    'in another one': `${text}insert into a values (1, X'${hex.toUpperCase()}');\n`,
    'in a copy of a table': `${text}1\t\\\\x${hex}\tb\n`,
    'in records with 16 bits': `S0030000FC\r\n${toRecords('1', 2).toUpperCase()}S9030000FC\r\n`,
    'in records with 24 bits': toRecords('2', 3),
    'in records with 32 bits': `${text}${toRecords('3', 4).toUpperCase()}`,
    'as octal escapes': `printf '${escapeWith((byte) => `\\${byte.toString(8).padStart(3, '0')}`)}' > a\n`,
  }
  for (const [name, content] of Object.entries(forms)) {
    test(name, async () => {
      const { given, doubts } = await tryReader(hexTextReader, content)
      // Signatures of ClamAV mark escapes.
      assert.ok(hasEncoded(Buffer.from(content)) || name.includes('escapes'))
      assert.ok(hasMember(given, payload))
      assert.deepEqual(doubts, [])
    })
  }

  for (const options of [[], ['-u'], ['-c', '7'], ['-g', '4'], ['-c', '32', '-g', '1']]) {
    test(`as a dump of xxd ${options.join(' ')}`, { skip: lacks('xxd', '-v') }, async () => {
      const dump = run('xxd', options, { input: payload }).toString()
      const { given } = await tryReader(hexTextReader, `${text}xxd -r > a <<END\n${dump}END\n${text}`)
      assert.ok(hasMember(given, payload))
    })
  }
})

for (const [program, ...options] of [
  ['hexdump', '-Cv'],
  ['od', '-v', '-Ax', '-tx1'],
  ['od', '-v', '-tx1'],
  ['od', '-v', '-Ad', '-tx1z'],
  ['od', '-v', '-An', '-tx1'],
  ['od', '-v', '-tx1', '-w8'],
] as const) {
  test(`a dump of ${[program, ...options].join(' ')} is given`, {
    skip: lacks(program, '-V') && lacks(program, '--version'),
  }, async () => {
    const short = Buffer.from(Array.from({ length: 68 }, (_, i) => (i * 37) % 256))
    for (const bytes of [payload, short]) {
      const dump = run(program, options, { input: bytes })
      for (const content of [dump, Buffer.from(`${text}${dump.toString().replaceAll('\n', '\r\n')}\r\n${text}`)]) {
        assert.ok(hasEncoded(content))
        assert.ok(hasMember((await tryReader(hexTextReader, content)).given, bytes))
      }
    }
  })
}

test('a dump is given although its lines are damaged', async () => {
  const lines = [
    '00000000: 5835 4f21 5025 4041  X5O!P%@A',
    '00000008: 505b 345c 505a 5835 CC)7}$E',
    '00000010: 3428 505e  4(\x01^',
  ]
  const bytes = Buffer.from('58354f2150254041505b345c505a58353428505e', 'hex')
  const rows = Array.from({ length: 5 }, () => lines.join('\n'))
  const { given } = await tryReader(hexTextReader, `xxd -r <<END\n${rows.join('\n')}\nEND\n`)
  assert.ok(hasMember(given, Buffer.concat(Array(5).fill(bytes))))
})

test('digits that are larger than one piece of the source are whole', async () => {
  const large = Buffer.alloc(2 ** 19 + 20_000, payload)
  for (const content of [large.toString('hex'), large.toString('hex').replace(/.{60}/g, '$&\n')]) {
    const { given } = await tryReader(hexTextReader, `xxd\n${content}`)
    assert.ok(hasMember(given, large))
  }
})

test('ordinary text has nothing to give', async () => {
  const hash = payload.subarray(0, 64).toString('hex')
  for (const content of [text, '', `${hash}  a.txt\n${hash}  b.txt\n`, 'added:\nbeef: dead\n', `{"a": "${hash}"}`])
    assert.deepEqual((await tryReader(hexTextReader, content)).given, [], content)
})

test('digits in great number are given together', async () => {
  const strings = Array.from({ length: 1500 }, (_, n) => `"${n.toString(16).padStart(4, '0')}${hex}",\n`)
  assert.equal((await tryReader(hexTextReader, strings.join(''))).given.length, 1001)
})

test('damaged text never fails', async () => {
  const dump = '00000000: 5835 4f21 5025 4041  X5O!P%@A\n'.repeat(10)
  await fuzzReader(hexTextReader, [Buffer.from(`${lines}\n${dump}"${escaped}"\n${text}`)], 250)
})

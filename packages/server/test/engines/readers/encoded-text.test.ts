import assert from 'node:assert/strict'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { describe, test } from 'node:test'
import { openBufferSource } from '../../../src/engines/unpack/child/reader.ts'
import { encodedTextReader } from '../../../src/engines/unpack/child/readers/encoded-text.ts'
import { hasMember, lacks, run, tryReader } from './read-with.ts'
import { fuzzReader } from './reader-support.ts'

const payload = Buffer.from(Array.from({ length: 400 }, (_, i) => (i * 7) % 256))
const base64 = payload.toString('base64').replace(/.{76}/g, '$&\n')

/** Encodes as uuencode does. */
function toUuencode(bytes: Buffer): string {
  const lines: string[] = []
  for (let at = 0; at < bytes.length; at += 45) {
    const line = bytes.subarray(at, at + 45)
    const padded = Buffer.concat([line, Buffer.alloc((3 - (line.length % 3)) % 3)])
    let text = String.fromCharCode(32 + line.length)
    for (let i = 0; i < padded.length; i += 3) {
      const bits = padded.readUIntBE(i, 3)
      for (const shift of [18, 12, 6, 0]) text += String.fromCharCode(((bits >> shift) & 63) + 32).replace(' ', '`')
    }
    lines.push(text)
  }
  return `begin 644 a.bin\n${lines.join('\n')}\n\`\nend\n`
}

function toYenc(bytes: Buffer): string {
  const chars = [...bytes].map((byte) => {
    const shifted = (byte + 42) & 255
    return [0, 10, 13, 61].includes(shifted)
      ? `=${String.fromCharCode((shifted + 64) & 255)}`
      : String.fromCharCode(shifted)
  })
  return `=ybegin line=128 size=400 name=a.bin\n${chars.join('').replace(/[^=]{120}(?!=)/g, '$&\n')}\n=yend size=400\n`
}

/** Encodes as xxencode does: uuencode in another alphabet. */
const toXxencode = (bytes: Buffer): string => {
  const [first = '', ...lines] = toUuencode(bytes).split('\n')
  const encode = (char: string) => xxAlphabet[(char.charCodeAt(0) - 32) & 63]
  return [
    first,
    ...lines.map((line) => (line === 'end' ? line : line.replace(/./g, (char) => encode(char) ?? ''))),
  ].join('\n')
}
const xxAlphabet = '+-0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz'

const text = 'A line of text.\n'.repeat(50)

describe('encoded data is given', () => {
  const forms: Record<string, string> = {
    uuencode: toUuencode(payload),
    'uuencode behind text': `${text}${toUuencode(payload)}${text}`,
    'uuencode with CRLF': toUuencode(payload).replaceAll('\n', '\r\n'),
    'uuencode with CR': toUuencode(payload).replaceAll('\n', '\r'),
    'uuencode with data behind a line of length zero': toUuencode(payload).replace('\n', '\n`\n'),
    'uuencode with other lines between': toUuencode(payload).replace(/\n(?=M.*\nM)/, '\nan other line\n'),
    'uuencode with base64': `${text}begin-base64 644 a.bin\n${base64}\n====\n${text}`,
    'uuencode behind a control character': `A\x02 text\n${toUuencode(payload)}`,
    'uuencode with other rights': `${text}${toUuencode(payload).replace('644', ' \t+0100644')}`,
    'uuencode with rights and name in one word': `${text}${toUuencode(payload).replace('644 ', '644')}`,
    'uuencode with a word for the rights': `${text}${toUuencode(payload).replace('644', '\xefo44')}`,
    'uuencode behind a start without an end': `${text}begin 644 b\n#0V%T\n${text}${toUuencode(payload)}`,
    'uuencode with bytes that are masked': toUuencode(payload).replace(/\nM/g, '\n\xcd'),
    xxencode: `${text}${toXxencode(payload)}`,
    'base64 with an encoded name': `${text}begin-encoded-base64  644 YQ==\n${base64}\n====\n`,
    yEnc: `${text}${toYenc(payload)}`,
    'yEnc with fields in another order': `${text}${toYenc(payload).replace(/line=128 (size=400)/, '$1 line=128')}`,
    'yEnc behind a start without an end': `${text}=ybegin line=128 size=9 name=b\n${text}${toYenc(payload)}`,
    'base64 in a here-document': `#!/bin/sh\nbase64 -d > a.bin << 'EOF'\n${base64}\nEOF\nrm a\n`,
  }
  for (const [name, content] of Object.entries(forms)) {
    test(name, async () => {
      const { given, doubts } = await tryReader(encodedTextReader, content)
      assert.ok(hasMember(given, payload))
      assert.deepEqual(doubts, [])
    })
  }
})

test('lines of a shell archive are given without their mark', async () => {
  const script = `#!/bin/sh\nsed 's/^X//' << 'SHAR_EOF' > 'a.txt' &&\nXone\nXXtwo\nthree\nSHAR_EOF\n`
  const { given } = await tryReader(encodedTextReader, script)
  assert.ok(hasMember(given, 'one\nXtwo\nthree\n'))
})

describe('what a shell writes from a here-document is given', () => {
  const scripts: Record<string, string> = {
    'without a word as prefix': `sed -e 's/^LONG//' > a <<'END'\nLONGThe file.\nEND\n`,
    'with a prefix between other delimiters': `sed 's,^Y,,' > a <<'END'\nYThe file.\nEND\n`,
    'with a pattern as prefix': `sed 's/^[X]//' > a <<'END'\nXThe file.\nEND\n`,
    'from a column': `cut -c3- > a <<'END'\nXYThe file.\nEND\n`,
    'from a character': `awk '{print substr($0,3)}' > a <<'END'\nXYThe file.\nEND\n`,
    'by a loop': `while read -r l; do echo "$l"; done > a <<'END'\nThe file.\nEND\n`,
    'over several lines': `cat \\\n > a \\\n <<'END'\nThe file.\nEND\n`,
    'with a word quoted in part': `cat > a <<E'N'D\nThe file.\nEND\n`,
    'second on a line': `cat <<A; cat <<B > a\nxx\nA\nThe file.\nB\n`,
    'behind tabs': `cat > a <<-END\n\t\tThe file.\n\tEND\n`,
    'with escapes': `cat > a <<END\nThe \\\nfile.\nEND\n`,
    'within another one': `cat > b <<A\n${text.repeat(6)}\ncat > a <<B\nThe file.\nB\nA\n`,
    'without its end': `cat > a <<'END'\nThe file.\n`,
    'in a script with controls in its first line': `cat > a <<'END'\nThe file.\nEND\n`,
    'in a script with a control character': `# \x02\ncat > a <<'END'\nThe file.\nEND\n`,
  }
  for (const [name, script] of Object.entries(scripts)) {
    test(name, async () => {
      const first = name.includes('first line') ? '#!/b\0\x01sh' : '#!/bin/sh\n# A comment.'
      const { given } = await tryReader(encodedTextReader, `${first}\n${script}`)
      assert.ok(hasMember(given, 'The file.\n'))
    })
  }
})

test('signs of other languages do not multiply the work', async () => {
  const program = `#!/bin/cat\n${Array.from({ length: 20_000 }, (_, n) => `out << word${n} << word;\n`).join('')}`
  const { given } = await tryReader(encodedTextReader, program)
  assert.ok(given.length < 10)
})

test('a shell archive by shar', { skip: lacks('shar') }, async () => {
  const folder = mkdtempSync(join(tmpdir(), 'assay-shar-'))
  try {
    writeFileSync(join(folder, 'a.bin'), payload)
    writeFileSync(join(folder, 'a.txt'), 'X first\n- second\n')
    const { given } = await tryReader(encodedTextReader, run('shar', ['a.bin', 'a.txt'], { cwd: folder }))
    const inner = await Promise.all(given.map(({ bytes }) => tryReader(encodedTextReader, bytes)))
    assert.ok(hasMember([...given, ...inner.flatMap((reading) => reading.given)], payload))
    assert.ok(hasMember(given, 'X first\n- second\n'))
  } finally {
    rmSync(folder, { recursive: true })
  }
})

describe('text that a script reads from itself is given', () => {
  const scripts: Record<string, string> = {
    'behind a mark': `#!/bin/sh\nline=$(awk '/^__ARCHIVE__$/ { print NR + 1 }' "$0")\ntail -n +$line "$0" > a\nexit 0\n__ARCHIVE__\n`,
    'behind its last command': `#!/bin/sh\nsed '1,/^exit$/d' "$0" > a\nexit\n`,
    'from a line': `#!/bin/sh\ntail -n +4 "$0" > a; kill $$\n# The file follows.\n`,
    'behind so many lines': `#!/bin/sh\nsed 1,3d "$0" > a; kill $$\n# The file follows.\n`,
  }
  for (const [name, script] of Object.entries(scripts)) {
    test(name, async () => {
      const { given } = await tryReader(encodedTextReader, `${script}The file.\n`)
      assert.ok(hasMember(given, 'The file.\n'))
    })
  }
})

test('binary data of a script is given from the line that the script names', async () => {
  const script = `#!/bin/sh\n# Made by Makeself\nskip="4"\nexit 0\n`
  const data = Buffer.from('Salted__ab\ncd\0\x01\x02')
  const { given } = await tryReader(encodedTextReader, Buffer.concat([Buffer.from(script), data]))
  assert.ok(hasMember(given, data))
})

test('bytes behind a script are left to be read as content of their own', async () => {
  const script = Buffer.from(`#!/bin/sh\ncat << EOF\na\nEOF\nexit\n`)
  const { accounted } = await tryReader(encodedTextReader, Buffer.concat([script, Buffer.from([0, 1, 2])]))
  assert.deepEqual(accounted, [{ start: 0, end: script.length }])
})

test('ordinary text has nothing to give', async () => {
  for (const content of [text, `begin 5 days ago\n${text}`, 'begin', `x\nbegin work\n${text}`, '']) {
    const { given, doubts } = await tryReader(encodedTextReader, content)
    assert.deepEqual([given, doubts], [[], []])
  }
})

test('damaged text never fails', async () => {
  const script = `#!/bin/sh\nbase64 -d > a << 'EOF'\n${base64}\nEOF\n${toUuencode(payload)}${toYenc(payload)}`
  const shell = `#!/bin/sh\nsed 's/^X//' > a <<E\nX\\$a\nE\ncut -c3- <<-'F' > b\n\tXYa\n\tF\n`
  await fuzzReader(encodedTextReader, [Buffer.from(script, 'latin1'), Buffer.from(shell)], 500)
})

test('signs of a script behind text are no script', () => {
  const content = Buffer.concat([
    Buffer.from('A title of some length and more\n'),
    Buffer.from('\0\x01 dd \n<<x dd\n\0', 'latin1'),
  ])
  assert.equal(encodedTextReader.recognizes(openBufferSource(content)), false)
})

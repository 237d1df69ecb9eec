import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { test } from 'node:test'
import { canHoldContent } from '../../src/domain/content/container.ts'
import type { SeenMembers } from '../../src/domain/ports/engines.ts'
import { isPlainText, openMembers } from '../../src/engines/unpack/child/members.ts'
import { newTar } from './unpack-archives.ts'

const prose = 'export const sum = (a, b) => a + b // An ordinary line of a program.\n'
const data = Buffer.from('Some bytes that somebody encoded, long enough to count as a run').toString('base64')

test('ordinary programs and texts are plain', () => {
  const texts = [
    prose.repeat(500),
    'Überschrift\n\n\tEin Text mit Umlauten: äöü, 漢字.\r\n',
    '#!/bin/sh\nset -e\ncat file | tail -n 5 > out\n',
    '',
  ]
  for (const text of texts) assert.ok(isPlainText(Buffer.from(text)), text.slice(0, 80))
})

test('text in which a reader may find a file is not plain', () => {
  const texts = [
    'begin 644 a\n#0V%T\n`\nend\n'.padStart(40, '\n'),
    'Text\nbegin  +644a\n#0V%T\n`\nend\n',
    'Text\nbegin-encoded-base64 644 YQ==\nYQ==\n====\n',
    'Text\n=ybegin name=a\n',
    `a = b'${'\\x41'.repeat(8)}'\n`,
    "sed 's/^X//' > a <<'SHAR_EOF'\nXtext\nSHAR_EOF\n",
    '#!/bin/sh\ntail -n +5 "$0" | sh\nexit\n',
    `Text\n-----BEGIN PGP MESSAGE-----\n\n${data}\n`,
    `${prose}\0`,
    `${prose}PK\x05\x06`,
  ]
  for (const text of texts) assert.ok(!isPlainText(Buffer.from(text, 'latin1')), text.slice(0, 80))
})

test('no text that the signatures of Assay mark is plain', () => {
  const signatures = readFileSync(new URL('../../signatures/assay.ldb', import.meta.url), 'utf8')
    .split('\n')
    .filter((line) => line.startsWith('Heuristics.Assay.'))
  let count = 0
  for (const signature of signatures) {
    for (const witness of listWitnesses(signature)) {
      count++
      assert.ok(
        canHoldContent(witness) || !isPlainText(witness),
        `${signature.split(';')[0]} ${witness.toString('latin1')}`,
      )
    }
  }
  assert.ok(count > 150, `${count} contents`)
})

/** Contents that match a logical signature of ClamAV: one for each alternative of its parts, the others being the first. */
function listWitnesses(signature: string): Buffer[] {
  const [, , expression = '', ...parts] = signature.split(';')
  const groups = expression.split('&').flatMap((group) => {
    const numbers = [...group.matchAll(/(\d+)(?![\d=>])(?!=0)|(\d+)>1/g)].map(([, one, many]) => Number(one ?? many))
    return numbers.length === 0 ? [] : [numbers.flatMap((number) => listTexts(parts[number] ?? ''))]
  })
  return groups.flatMap((alternatives, n) =>
    alternatives.map((text) => assemble(groups.map((others, m) => (m === n ? text : (others[0] ?? text))))),
  )
}

type Placed = { at: number | undefined; bytes: Buffer }

/** Writes texts into lines of blanks, each at its place or behind the others. */
function assemble(texts: Placed[]): Buffer {
  const content = Buffer.alloc(2048, `${' '.repeat(63)}\n`)
  for (const { at, bytes } of texts) if (at !== undefined) bytes.copy(content, at < 0 ? content.length + at : at)
  return Buffer.concat([content, ...texts.flatMap(({ at, bytes }) => (at === undefined ? [bytes, lineEnd] : []))])
}

const lineEnd = Buffer.from('\n')

/** Texts that match a part of a signature. Bytes that it leaves open are letters, so that the text has no others. */
function listTexts(part: string): Placed[] {
  // Signatures have two patterns: the first is that of escapes in a string, the second that of BinHex.
  const sample = part.includes('u00') ? '\\x41'.repeat(8) : `${part.includes(':[!-') ? '\n:' : ''}${'A'.repeat(32)}`
  if (part.includes('/')) return [{ at: undefined, bytes: Buffer.from(sample) }]
  const [, place, pattern = '', ignoresCase] = /^(?:(\d+|EOF-\d+):)?([^:]*)(::i)?$/.exec(part) ?? []
  const at = place === undefined ? undefined : Number(place.replace('EOF', ''))
  let texts = ['']
  for (const [token] of pattern.matchAll(/!?\([^)]*\)|\{[^}]*\}|[0-9a-f?]{2}/g))
    texts = texts.flatMap((text) => listBytes(token).map((bytes) => text + bytes))
  const found = texts.map((hex) => ({ at, bytes: Buffer.from(hex, 'hex') }))
  const upper = found.map(({ bytes }) => ({ at, bytes: Buffer.from(bytes.toString('latin1').toUpperCase(), 'latin1') }))
  return ignoresCase === undefined ? found : [...found, ...upper]
}

function listBytes(token: string): string[] {
  if (token.startsWith('!(')) return ['41']
  if (token.startsWith('(')) return token.slice(1, -1).split('|')
  if (token.startsWith('{')) return ['', '41'.repeat(80)]
  return token === '??' ? ['41'] : [token.replace(/^\?/, '4').replace('?', '1')]
}

async function give(seen: SeenMembers, contents: Record<string, string | Buffer>, isSeen = true): Promise<string[]> {
  const given: string[] = []
  const send = (kind: string, payload: Uint8Array) => kind === 'open' && given.push(Buffer.from(payload).toString())
  const members = openMembers({ send, fetch: () => Buffer.alloc(0) }, { seen })
  for (const [path, content] of Object.entries(contents))
    await members.give({ path, pieces: [Buffer.from(content)], isSeen })
  return given
}

test('members that ClamAV has scanned are left out if they hold nothing, and searched where one may', async () => {
  const contents = {
    plain: prose,
    base64: `atob('${data}')`,
    binary: Buffer.from([1, 2, 3, 4]),
    long: prose.repeat(2000),
    tar: newTar(['a']),
    empty: '',
  }
  assert.deepEqual(await give('skip', contents), ['base64', 'tar'])
  assert.deepEqual(await give('search', contents), ['base64', 'binary', 'long', 'tar'])
  assert.deepEqual(await give('give', contents), Object.keys(contents))
  assert.deepEqual(await give('skip', contents, false), Object.keys(contents))
})

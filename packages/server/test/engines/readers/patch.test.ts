import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, describe, test } from 'node:test'
import { hasEncoded } from '../../../src/domain/content/encoded-text.ts'
import { patchReader } from '../../../src/engines/unpack/child/readers/patch.ts'
import { hasMember, lacks, tryReader } from './read-with.ts'
import { fuzzReader } from './reader-support.ts'

const payload = 'A first line.\n-- \n++ The end, without a line end'
const lines = Array.from({ length: 40 }, (_, n) => `Line ${n} of a file.\n`)
const directory = mkdtempSync(join(tmpdir(), 'assay-patch-'))
after(() => rmSync(directory, { recursive: true, force: true }))

/** Runs a program in a directory that has one file in two states, and returns what the program prints. */
function runOn(before: string | Buffer, behind: string | Buffer, program: string, args: string[]): Buffer {
  for (const [name, content] of Object.entries({ before, behind })) {
    mkdirSync(join(directory, name), { recursive: true })
    writeFileSync(join(directory, name, 'file'), content)
  }
  return spawnSync(program, args, { cwd: directory }).stdout
}

describe('both sides of a patch are given', { skip: lacks('diff', '-v') }, () => {
  const changes: Record<string, [before: string, behind: string]> = {
    'a new file': ['', payload],
    'a removed file': [payload, ''],
    'a file that is replaced': [lines.slice(0, 3).join(''), payload],
    'a line that is added': [payload, `A line.\n${payload}`],
    'a line that is removed': [`A line.\n${payload}`, payload],
    'a line end that is added': [payload, `${payload}\n`],
    'an empty line': ['a\n\nb\n', 'a\n\n\nb\n'],
  }
  for (const [name, [before, behind]] of Object.entries(changes)) {
    for (const form of ['-u', '-c', '-U99', '-C99', '-up', '-cp']) {
      test(`${name}, with diff ${form}`, async () => {
        const patch = runOn(before, behind, 'diff', ['-a', form, 'before', 'behind'])
        assert.ok(hasEncoded(patch))
        const { given, doubts } = await tryReader(patchReader, patch)
        for (const content of [before, behind]) assert.ok(content === '' || hasMember(given, content), patch.toString())
        assert.deepEqual(doubts, [])
      })
    }
  }
  for (const form of ['-U0', '--normal', '-C0']) {
    test(`a new file, with diff ${form}`, async () => {
      for (const sides of [
        ['before', 'behind'],
        ['behind', 'before'],
      ]) {
        const patch = runOn('', payload, 'diff', ['-a', form, ...sides])
        assert.ok(hasEncoded(patch))
        assert.ok(hasMember((await tryReader(patchReader, patch)).given, payload))
      }
    })
  }

  test('changes further down are given together', async () => {
    const changed = lines.map((line, n) => (n % 10 === 5 ? `Another ${line}` : line))
    const patch = runOn(lines.join(''), changed.join(''), 'diff', ['-u', 'before', 'behind'])
    const { given } = await tryReader(patchReader, patch)
    const sides = given.map(({ path, bytes }) => [path, bytes.toString().match(/Another/g)?.length])
    assert.deepEqual(sides, [
      ['[other changes, new]', 4],
      ['[other changes, old]', undefined],
    ])
  })
})

const newFile = `--- /dev/null\n+++ b/a.txt\n@@ -0,0 +1,3 @@\n${payload.replace(/^/gm, '+')}\n\\ No newline at end of file\n`

describe('patches are read in other text', () => {
  const forms: Record<string, string> = {
    'behind prose': `Some text.\n\n${newFile}`,
    'before other files': `${newFile}diff --git a/b b/b\n--- a/b\n+++ b/b\n@@ -1 +1 @@\n-a\n+b\n-- \n2.40\n`,
    'behind other files': `--- a\n+++ b\n@@ -1,2 +1,2 @@\n a\n-b\n+c\n${newFile}`,
    'without names': newFile.split('\n').slice(2).join('\n'),
    'with an indent': newFile.replace(/^/gm, '    '),
    'with a byte order mark': `\ufeff${newFile}`,
  }
  for (const [name, text] of Object.entries(forms)) {
    test(name, async () => {
      assert.ok(hasEncoded(Buffer.from(text)))
      assert.ok(hasMember((await tryReader(patchReader, Buffer.from(text))).given, payload))
    })
  }

  test('with line ends of Windows', async () => {
    const { given } = await tryReader(patchReader, newFile.replaceAll('\n', '\r\n'))
    assert.ok(hasMember(given, payload.replaceAll('\n', '\r\n')))
  })

  test('with a line that is longer than what is read at once', async () => {
    const long = `${'a+-'.repeat(90_000)}\n${payload}`
    const { given } = await tryReader(patchReader, newFile.replace('+A', `+${'a+-'.repeat(90_000)}\n+A`))
    assert.ok(hasMember(given, long))
  })
})

describe('binary data of Git is given', { skip: lacks('git', '--version') }, () => {
  const file = randomBytes(3000)
  const diff = (before: Buffer, behind: Buffer) =>
    runOn(before, behind, 'git', ['diff', '--no-index', '--binary', 'before/file', 'behind/file'])

  test('as whole files', async () => {
    const other = randomBytes(2000)
    const patch = diff(other, file)
    assert.ok(hasEncoded(patch))
    const { given, doubts } = await tryReader(patchReader, patch.toString().replaceAll('\n', '\r\n'))
    for (const content of [other, file]) assert.ok(hasMember(given, content))
    assert.deepEqual(doubts, [])
  })

  test('as what is added to another file', async () => {
    const added = randomBytes(100)
    const patch = diff(file, Buffer.concat([file.subarray(0, 1500), added, file.subarray(1500)]))
    assert.match(patch.toString(), /^delta /m)
    const { given } = await tryReader(patchReader, patch)
    assert.ok(given.some(({ bytes }) => bytes.includes(added)))
  })

  test('up to the place where it is damaged', async () => {
    const patch = diff(Buffer.alloc(0), file).toString().split('\n')
    const { doubts } = await tryReader(patchReader, [...patch.slice(0, 20), 'text', ...patch.slice(20)].join('\n'))
    assert.deepEqual(doubts, [])
  })
})

test('ordinary text is no patch', async () => {
  const texts = [
    '> A line that somebody quotes.\n',
    '*** 1 ***\n',
    'ann@@ -1\n',
    '* GIT binary patch\n',
    '10\n> a\n',
    '@@ -a\n',
  ]
  for (const text of texts) {
    assert.ok(!hasEncoded(Buffer.from(text)), text)
    assert.deepEqual((await tryReader(patchReader, text)).given, [], text)
  }
})

test('damaged patches never fail', async () => {
  const context = '***************\n*** 0 ****\n--- 1,2 ----\n+ a\n+ b\n'
  const binary = 'GIT binary patch\nliteral 4\nLcmZQzWMT#Y01f~L\n\nliteral 0\nHcmV?d00001\n'
  await fuzzReader(
    patchReader,
    [Buffer.from(newFile), Buffer.from(context), Buffer.from(binary), Buffer.from('0a1\n> a\n')],
    600,
  )
})

import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, describe, test } from 'node:test'
import { canHoldContent } from '../../../src/domain/content/container.ts'
import { zlibReader } from '../../../src/engines/unpack/child/readers/compressed-streams.ts'
import { gitObjectReader, gitStreamReader } from '../../../src/engines/unpack/child/readers/git.ts'
import { hasMember, lacks, tryReader } from './read-with.ts'
import { fuzzReader, readWith } from './reader-support.ts'

const payload = Buffer.from('A file in a repository.\ndata 4\nA second line.\n')

test('the content of an object is given without its header', async () => {
  for (const type of ['blob', 'commit', 'tag', 'tree']) {
    const object = Buffer.concat([Buffer.from(`${type} ${payload.length}\0`), payload])
    assert.ok(canHoldContent(object), type)
    const { given, accounted, doubts } = await readWith(gitObjectReader, object)
    assert.ok(hasMember(given, payload), type)
    assert.deepEqual([accounted, doubts], [[{ start: 0, end: object.length }], []])
  }
})

test('words with which an object begins are no object', async () => {
  for (const text of [
    'blob 12\n',
    'tree of life',
    'tag 1 2\0',
    'commit messages are texts',
    'blob\nof ink',
    'reset it\nnow',
  ]) {
    assert.deepEqual((await tryReader(gitObjectReader, text)).given, [], text)
    assert.ok(!canHoldContent(Buffer.from(text)), text)
  }
})

describe('what Git writes', { skip: lacks('git', '--version') }, () => {
  const directory = mkdtempSync(join(tmpdir(), 'assay-git-'))
  after(() => rmSync(directory, { recursive: true, force: true }))
  const git = (...args: string[]) =>
    execFileSync('git', ['-c', 'user.name=a', '-c', 'user.email=a@example.org', ...args], { cwd: directory })
  const commit = () => {
    git('init', '-q', '.')
    writeFileSync(join(directory, 'a.txt'), payload)
    git('add', 'a.txt')
    git('commit', '-qm', 'Add a file')
  }

  test('a loose object and a stream hold the file', async () => {
    commit()
    const hash = git('hash-object', 'a.txt').toString().trim()
    const object = readFileSync(join(directory, '.git/objects', hash.slice(0, 2), hash.slice(2)))
    assert.ok(canHoldContent(object))
    assert.deepEqual(
      (await readWith(zlibReader, object)).given.map(({ bytes }) => bytes),
      [payload],
    )

    const stream = git('fast-export', '--all')
    assert.ok(canHoldContent(stream))
    const { given, doubts } = await readWith(gitStreamReader, stream)
    assert.ok(hasMember(given, payload))
    assert.equal(given.length, 1)
    assert.deepEqual(doubts, [])
  })
})

test('data of a stream may end before a word, and follow other data without a line end', async () => {
  const forms = [
    `reset refs/heads/a\ncommit refs/heads/a\ncommitter a <a@b> 1 +0000\ndata 3\nadd\nM 644 inline a\ndata ${payload.length}\n${payload}\n`,
    `feature done\nblob\nmark :1\ndata 2\nab\nblob\nmark :2\ndata <<END\n${payload}END\ndone\n`,
    `blob\ndata 1\na\nblob\ndata ${payload.length + 10}\n${payload}`,
  ]
  for (const form of forms) {
    assert.ok(canHoldContent(Buffer.from(form)), form)
    assert.ok(hasMember((await readWith(gitStreamReader, Buffer.from(form))).given, payload), form)
  }
})

test('bad bytes never make the readers throw', async () => {
  await fuzzReader(gitObjectReader, [Buffer.from(`blob 3\0${payload}`)], 200)
  await fuzzReader(gitStreamReader, [Buffer.from(`blob\nmark :1\ndata ${payload.length}\n${payload}\n`)], 300)
})

import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'node:test'
import { callClamscan, runClamscan, scanFiles, signaturesDir } from './clamscan.ts'

const read = (extension: string) =>
  readdirSync(signaturesDir)
    .filter((name) => name.endsWith(extension))
    .map((name) => readFileSync(join(signaturesDir, name), 'utf8'))
    .join('\n')

test('ClamAV loads every signature of the folder, and complains about none', () => {
  const lines = (text: string, pattern: RegExp) => text.split('\n').filter((line) => pattern.test(line)).length
  const expected = lines(read('.ndb'), /^[^#]/) + lines(read('.ldb'), /^[^#]/) + lines(read('.yar'), /^rule /)
  const run = callClamscan([import.meta.filename])
  assert.equal(run.stderr, '')
  assert.equal(Number(/^Known viruses: (\d+)$/m.exec(run.stdout)?.[1]), expected)
})

test('every marker is a logical signature, because a weak body signature hides what is embedded behind it', () => {
  assert.doesNotMatch(read('.ndb'), /^Heuristics/m)
  for (const line of read('.ldb')
    .split('\n')
    .filter((line) => /^[^#]/.test(line)))
    assert.match(line, /^Heuristics\.Assay\.(Container|Encrypted)\.\w+;/)
})

test('the files of this repository are clean', () => {
  const root = new URL('../../../../', import.meta.url).pathname
  const listed = spawnSync('git', ['ls-files', '-z', '--cached', '--others', '--exclude-standard'], {
    cwd: root,
    encoding: 'utf8',
  })
  assert.equal(listed.status, 0, `git ls-files: ${listed.stderr}`)
  const files = listed.stdout.split('\0').filter((name) => name !== '' && existsSync(join(root, name)))
  const dir = mkdtempSync(join(tmpdir(), 'assay-signatures-'))
  try {
    const list = join(dir, 'list')
    writeFileSync(list, files.map((name) => join(root, name)).join('\n'))
    const answers = runClamscan(['--file-list', list])
    assert.ok(answers.size > 50, `only ${answers.size} files`)
    const hits = [...answers].filter(
      ([, answer]) => answer !== 'OK' && answer !== 'Empty file' && answer !== 'Symbolic link',
    )
    assert.deepEqual(hits, [])
  } finally {
    rmSync(dir, { recursive: true, force: true })
  }
})

test('an empty file and a plain text are clean', () => {
  assert.deepEqual(scanFiles({ empty: '', text: 'hello\n' }), { empty: null, text: null })
})

import assert from 'node:assert/strict'
import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'node:test'
import { fileURLToPath } from 'node:url'
import { callClamscan, needsClamscan, runClamscan, scanFiles, signaturesDir } from './clamscan.ts'

const read = (extension: string) =>
  readdirSync(signaturesDir)
    .filter((name) => name.endsWith(extension))
    .map((name) => readFileSync(join(signaturesDir, name), 'utf8'))
    .join('\n')

test('ClamAV loads every signature of the folder, and complains about none', needsClamscan, () => {
  const lines = (text: string, pattern: RegExp) => text.split('\n').filter((line) => pattern.test(line)).length
  const expected = lines(read('.ndb'), /^[^#]/) + lines(read('.ldb'), /^[^#]/) + lines(read('.yar'), /^rule /)
  const run = callClamscan([import.meta.filename])
  assert.equal(run.stderr, '')
  assert.equal(Number(/^Known viruses: (\d+)$/m.exec(run.stdout)?.[1]), expected)
})

test(
  'every marker is a logical signature, because a weak body signature hides what is embedded behind it',
  needsClamscan,
  () => {
    assert.doesNotMatch(read('.ndb'), /^Heuristics/m)
    for (const line of read('.ldb')
      .split('\n')
      .filter((line) => /^[^#]/.test(line)))
      assert.match(line, /^Heuristics\.Assay\.(Container|Encrypted|Search)\.\w+;/)
  },
)

test('the files of this repository are clean', needsClamscan, () => {
  const root = fileURLToPath(new URL('../../../../', import.meta.url))
  const files = listFiles(root)
  const dir = mkdtempSync(join(tmpdir(), 'assay-signatures-'))
  try {
    const list = join(dir, 'list')
    writeFileSync(list, files.join('\n'))
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

test('an empty file and a plain text are clean', needsClamscan, () => {
  assert.deepEqual(scanFiles({ empty: '', text: 'hello\n' }), { empty: null, text: null })
})

/** Folders of installed and generated files. Those of a build, among them the converted image models, take 200 MB. */
const generated = ['node_modules', '.git', 'data', 'built', 'dist']

/** The files of the repository, without installed and generated ones. */
function listFiles(dir: string): string[] {
  return readdirSync(dir, { withFileTypes: true }).flatMap((entry) => {
    if (generated.includes(entry.name)) return []
    const path = join(dir, entry.name)
    return entry.isDirectory() ? listFiles(path) : entry.isFile() ? [path] : []
  })
}

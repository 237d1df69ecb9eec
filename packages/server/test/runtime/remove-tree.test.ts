import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import {
  chmodSync,
  chownSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { describe, type TestContext, test } from 'node:test'
import { fileURLToPath } from 'node:url'
import { removeTree } from '../../src/runtime/files.ts'

const isRoot = process.getuid?.() === 0
const nobody = 65534
const asNobody = ['setpriv', `--reuid=${nobody}`, `--regid=${nobody}`, '--clear-groups', '--']
const source = fileURLToPath(new URL('../../src/runtime/files.ts', import.meta.url))
const canReadSource = !isRoot || run([...asNobody, 'test', '-r', source]).status === 0

function run([command = '', ...args]: string[], cwd = '/') {
  return spawnSync(command, args, { cwd, encoding: 'utf8', env: { PATH: process.env.PATH } })
}

/** Runs a script of Node as an ordinary user. */
function runAsUser(script: string, cwd: string) {
  const node = [process.execPath, '--no-warnings', '--input-type=module', '-e', script]
  const { stderr, status } = run(isRoot ? [...asNobody, ...node] : node, cwd)
  assert.deepEqual({ stderr, status }, { stderr: '', status: 0 })
}

/** A directory of an ordinary user in a directory of the service. */
function makeDirOfUser(t: TestContext) {
  const outer = mkdtempSync(join(tmpdir(), 'assay-remove-'))
  t.after(() => spawnSync('rm', ['-rf', outer]))
  // The user may create names here, because one of the tests removes the directory as that user.
  chmodSync(outer, 0o777)
  const dir = join(outer, 'dir')
  mkdirSync(dir, { mode: 0o700 })
  if (isRoot) chownSync(dir, nobody, nobody)
  return { outer, dir }
}

const plants: Record<string, string> = {
  'a directory that cannot be listed': `
    import { mkdirSync, writeFileSync } from 'node:fs'
    mkdirSync('outer', 0o300)
    mkdirSync('outer/inner', 0o300)
    writeFileSync('outer/inner/file', '')
    mkdirSync('closed', 0)
  `,
  'paths that are too long for one call': `
    import { mkdirSync, writeFileSync } from 'node:fs'
    for (let depth = 0; depth < 30; depth++) {
      mkdirSync('d'.repeat(200))
      process.chdir('d'.repeat(200))
    }
    writeFileSync('file', '')
  `,
  'an outermost directory that cannot be entered': `
    import { chmodSync, writeFileSync } from 'node:fs'
    writeFileSync('file', '')
    chmodSync('.', 0)
  `,
}

describe('removal of a directory in which a parser could write', () => {
  for (const [name, script] of Object.entries(plants)) {
    test(`as root, with ${name}`, { skip: !isRoot }, (t) => {
      const { dir } = makeDirOfUser(t)
      runAsUser(script, dir)
      removeTree(dir)
      assert.equal(existsSync(dir), false)
    })

    test(`as its user, with ${name}`, {
      skip: !canReadSource && 'an ordinary user cannot read this directory',
    }, (t) => {
      const { outer, dir } = makeDirOfUser(t)
      runAsUser(script, dir)
      const program = `
        import { removeTree } from ${JSON.stringify(source)}
        removeTree(${JSON.stringify(dir)})
      `
      runAsUser(program, outer)
      assert.equal(existsSync(dir), false)
    })
  }

  test('leaves alone what links point to', (t) => {
    const { outer, dir } = makeDirOfUser(t)
    const victims = join(outer, 'victims')
    mkdirSync(victims, { mode: 0o755 })
    writeFileSync(join(victims, 'file'), 'kept', { mode: 0o600 })
    symlinkSync(victims, join(dir, 'directory'))
    symlinkSync(join(victims, 'file'), join(dir, 'file'))
    removeTree(dir)
    symlinkSync(victims, dir)
    removeTree(dir)
    assert.equal(existsSync(dir), false)
    assert.equal(readFileSync(join(victims, 'file'), 'utf8'), 'kept')
  })
})

import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { commands } from '../src/command-line/commands.ts'
import { toCompletion } from '../src/command-line/completion.ts'
import { openDir } from './run-cli.ts'

const has = (shell: string) => spawnSync(shell, ['-c', 'exit 0']).status === 0

test('bash completes commands, options, files and directories', { skip: !has('bash') && 'needs bash' }, (t) => {
  const cwd = openDir(t)
  mkdirSync(join(cwd, 'reports'))
  writeFileSync(join(cwd, 'readme.txt'), '')
  const complete = (...words: string[]) => {
    const script = `${toCompletion('bash')}\nCOMP_WORDS=(assay-scan ${words.map((word) => `'${word}'`).join(' ')})
      COMP_CWORD=${words.length}; _assay_scan; printf '%s\\n' "\${COMPREPLY[@]}"`
    const { stdout, stderr } = spawnSync('bash', ['-c', script], { cwd, encoding: 'utf8' })
    assert.equal(stderr.replaceAll(/.*compopt.*\n/g, ''), '')
    return stdout
      .split('\n')
      .filter((word) => word !== '')
      .sort()
  }
  assert.deepEqual(complete('re'), ['readme.txt', 'reports', 'result'])
  assert.deepEqual(complete('--no'), ['--no-summary'])
  assert.deepEqual(complete('watch', 're'), ['reports'])
  assert.deepEqual(complete('watch', '--m'), ['--move-threats'])
  assert.deepEqual(complete('watch', '--move-threats', 're'), ['reports'])
  assert.deepEqual(complete('--parallel', ''), [])
  assert.deepEqual(complete('completion', ''), ['bash', 'fish', 'zsh'])
})

for (const shell of ['bash', 'zsh', 'fish'] as const) {
  test(`the script for ${shell} contains every option and is valid`, (t) => {
    const script = toCompletion(shell)
    for (const { name, options } of commands) {
      assert(script.includes(name))
      for (const option of options)
        assert(script.includes(shell === 'fish' ? `-l ${option.name}` : `--${option.name}`), option.name)
    }
    if (!has(shell)) return t.diagnostic(`${shell} is not installed`)
    const path = join(openDir(t), 'script')
    writeFileSync(path, script)
    const { status, stderr } = spawnSync(shell, ['-n', path], { encoding: 'utf8' })
    assert.equal(status, 0, stderr)
  })
}

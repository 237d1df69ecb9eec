import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'node:test'
import { chooseUnprivileged, wrapGuarded } from '../../src/runtime/process.ts'

const isRoot = process.getuid?.() === 0

/** Checks a file as PostgreSQL checks its own programs: with access(2), which is stricter than opening the file. */
const script = `
  const { accessSync, constants, readFileSync } = require('node:fs')
  accessSync(process.argv[1], constants.R_OK | constants.X_OK)
  const [, capabilities] = /^CapEff:\\s+(\\w+)$/m.exec(readFileSync('/proc/self/status', 'latin1'))
  console.log(process.getuid() + ' ' + Number.parseInt(capabilities, 16))
`
const searchOnly = 1 << 2

test('a program of another user gets to what lies in a closed home, by one capability alone', { skip: !isRoot }, () => {
  const home = mkdtempSync(join(tmpdir(), 'assay-closed-'))
  try {
    const dir = join(home, 'bin')
    mkdirSync(dir)
    const program = join(dir, 'program')
    writeFileSync(program, '', { mode: 0o755 })
    const user = chooseUnprivileged('program', ['nobody'], [dir])
    const seen = (args: { command: string; args: string[]; uid?: number; gid?: number }) => {
      const { command, args: words, ...options } = args
      const { stdout, stderr } = spawnSync(command, words, { encoding: 'utf8', cwd: '/', ...options })
      return stdout.trim() || stderr
    }
    assert.equal(seen(user.wrap(process.execPath, ['-e', script, program])), `65534 ${searchOnly}`)
    assert.equal(seen(wrapGuarded(user, process.execPath, ['-e', script, program])), `65534 ${searchOnly}`)
  } finally {
    rmSync(home, { recursive: true })
  }
})

import assert from 'node:assert/strict'
import {
  chmodSync,
  existsSync,
  mkdtempSync,
  readdirSync,
  rmSync,
  statfsSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { after, before, describe, test } from 'node:test'
import { chooseSandbox, scratchName } from '../../src/engines/jail/sandbox.ts'
import { removeOutsideDir } from '../../src/runtime/files.ts'

const user = { owner: undefined, wrap: (command: string, args: string[]) => ({ command, args }) }
const hasSharedMemory = existsSync('/dev/shm') && statfsSync('/dev/shm').type === 0x01021994

describe('where the kernel grants no name spaces', { skip: hasSharedMemory ? false : '/dev/shm is no tmpfs' }, () => {
  const path = process.env.PATH
  let dir = ''
  before(() => {
    dir = mkdtempSync(join(tmpdir(), 'assay-sandbox-'))
    writeFileSync(join(dir, 'unshare'), '#!/bin/sh\nexit 1\n', { mode: 0o755 })
    process.env.PATH = `${dir}:${path}`
  })
  after(() => {
    process.env.PATH = path
    rmSync(dir, { recursive: true })
  })
  const choose = () => chooseSandbox({ name: 'ClamAV', user, dir, scratchMegabytes: 64, acceptsDisk: false })

  test('clamd unpacks in shared memory, which is wiped before each start', () => {
    const { kind, scratchDir, wipe } = choose()
    assert.equal(kind, 'shared memory')
    wipe()
    try {
      writeFileSync(join(scratchDir, 'left-over'), 'clear content')
      symlinkSync(dir, join(scratchDir, 'link'))
      // The next start finds the directory again, although its name is random.
      const next = choose()
      assert.equal(next.scratchDir, scratchDir)
      next.wipe()
      assert.deepEqual(readdirSync(scratchDir), [])
      assert.ok(existsSync(join(dir, 'unshare')), 'nothing behind the link was touched')
    } finally {
      removeOutsideDir(join(dir, scratchName))
    }
    assert.equal(existsSync(dirname(scratchDir)), false)
  })

  test('a directory that others could write to is left alone, and another is made', () => {
    const { scratchDir } = choose()
    chmodSync(dirname(scratchDir), 0o777)
    const next = choose()
    try {
      assert.notEqual(next.scratchDir, scratchDir)
      assert.ok(existsSync(dirname(scratchDir)))
    } finally {
      rmSync(dirname(scratchDir), { recursive: true })
      removeOutsideDir(join(dir, scratchName))
    }
  })
})

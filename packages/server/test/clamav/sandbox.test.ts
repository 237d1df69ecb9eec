import assert from 'node:assert/strict'
import { existsSync, mkdirSync, mkdtempSync, rmSync, statfsSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, before, describe, test } from 'node:test'
import { chooseSandbox } from '../../src/engines/clamav/sandbox.ts'

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
  const choose = (acceptsDisk = false) => chooseSandbox({ user, dir, scratchMegabytes: 64, acceptsDisk })

  test('clamd unpacks in shared memory, which is wiped before each start', () => {
    const { kind, scratchDir, wipe } = choose()
    assert.equal(kind, 'shared memory')
    mkdirSync(scratchDir, { mode: 0o700 })
    try {
      writeFileSync(join(scratchDir, 'left-over'), 'clear content')
      wipe()
      assert.equal(existsSync(join(scratchDir, 'left-over')), false)
    } finally {
      rmSync(scratchDir, { recursive: true })
    }
  })

  test('a link that somebody put in its place is refused', () => {
    const { scratchDir, wipe } = choose()
    symlinkSync(dir, scratchDir)
    try {
      assert.throws(wipe, /made by another user/)
      assert.ok(existsSync(join(dir, 'unshare')), 'nothing behind the link was touched')
    } finally {
      rmSync(scratchDir)
    }
  })
})

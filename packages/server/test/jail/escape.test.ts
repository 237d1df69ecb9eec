import assert from 'node:assert/strict'
import {
  chmodSync,
  copyFileSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  realpathSync,
  rmSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, before, describe, test } from 'node:test'
import { prepareClamdDir } from '../../src/engines/clamav/clamd-config.ts'
import { openUpdater, type UpdateResult } from '../../src/engines/clamav/freshclam.ts'
import { startClamd } from '../../src/engines/clamav/supervisor.ts'
import { silentLog } from '../support/silent-log.ts'

const loader = ['/lib/ld-linux-aarch64.so.1', '/lib64/ld-linux-x86-64.so.2'].find((path) => existsSync(path))
const skip = loader === undefined || !existsSync('/usr/bin/unshare') ? 'this needs glibc and unshare' : false
const sameUser = { owner: undefined, wrap: (command: string, args: string[]) => ({ command, args }) }

describe('a program of ClamAV that makes a forbidden call', { skip }, () => {
  let dir = ''
  let binary = ''
  const escapes: string[] = []
  const onEscape = (parser: string) => escapes.push(parser)

  // The program may read the libraries beside it. One of them is `unshare`, which the loader of the system runs: without
  // flags, its first call is unshare(0).
  before(() => {
    dir = realpathSync(mkdtempSync(join(tmpdir(), 'assay-escape-')))
    for (const name of ['bin', 'lib', 'signatures']) mkdirSync(join(dir, name))
    copyFileSync('/usr/bin/unshare', join(dir, 'lib', 'unshare'))
    binary = join(dir, 'bin', 'clamd')
    writeFileSync(binary, `#!${loader} ${join(dir, 'lib', 'unshare')}\n`)
    chmodSync(binary, 0o755)
  })
  after(() => rmSync(dir, { recursive: true }))

  test('is killed and reported in the place of clamd', async () => {
    const scratchDir = join(dir, 'scratch')
    mkdirSync(scratchDir)
    const sandbox = {
      scratchDir,
      kind: 'disk' as const,
      megabytes: 64,
      keepsCapability: false,
      wrap: sameUser.wrap,
      wipe() {},
    }
    const place = prepareClamdDir(dir, 'clamav', sameUser)
    await assert.rejects(startClamd({ binary, place, config: '', sandbox, onEscape }), /clamd ended/)
    assert.deepEqual(escapes.splice(0), ['clamd'])
  })

  test('is killed and reported in the place of freshclam, and the update fails', async (t) => {
    const updater = openUpdater({
      binary,
      officialDir: join(dir, 'signatures', 'official'),
      user: sameUser,
      mirror: 'localhost',
      urls: [],
      everyHours: 24,
      onRun: () => {},
      log: silentLog,
      onEscape,
    })
    t.after(updater.close)
    const { ok, message }: UpdateResult = await updater.runNow()
    assert.deepEqual({ ok, message }, { ok: false, message: 'freshclam made a forbidden system call' })
    assert.deepEqual(escapes, ['freshclam'])
  })
})

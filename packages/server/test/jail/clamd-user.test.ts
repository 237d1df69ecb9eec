import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import {
  chmodSync,
  existsSync,
  lstatSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  realpathSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, before, describe, test } from 'node:test'
import { waitUntil } from '../../../../acceptance/support/wait-until.ts'
import { prepareClamdDir } from '../../src/engines/clamav/clamd-config.ts'
import { takeSocket } from '../../src/engines/clamav/supervisor.ts'
import { openTestClamd, whyNoClamd } from '../clamav/clamd-support.ts'
import { noAbort, toContent } from '../engines/yara-support.ts'

const isRoot = process.getuid?.() === 0
const skip = isRoot ? whyNoClamd : 'the service must be root'

describe('the user of clamd, outside of the jail, against a service of root', { skip }, () => {
  const path = process.env.PATH
  let dir = ''
  let dataDir = ''
  let victims = ''
  let clamd: Awaited<ReturnType<typeof openTestClamd>>

  before(async () => {
    dir = realpathSync(mkdtempSync(join(tmpdir(), 'assay-clamd-user-')))
    chmodSync(dir, 0o711)
    // Without namespaces clamd unpacks into a directory that all processes see, and root wipes it.
    mkdirSync(join(dir, 'programs'))
    writeFileSync(join(dir, 'programs', 'unshare'), '#!/bin/sh\nexit 1\n', { mode: 0o755 })
    process.env.PATH = `${join(dir, 'programs')}:${path}`
    dataDir = join(dir, 'data')
    victims = join(dir, 'victims')
    mkdirSync(dataDir, { mode: 0o711 })
    mkdirSync(victims, { mode: 0o755 })
    writeFileSync(join(dataDir, 'master.key'), 'the master key', { mode: 0o600 })
    writeFileSync(join(victims, 'daily.cvd'), 'a file of root', { mode: 0o644 })
    clamd = await openTestClamd(dataDir)
  })
  after(async () => {
    process.env.PATH = path
    await clamd?.close()
    rmSync(dir, { recursive: true, force: true })
  })

  /** All directories in which clamd's user can create names: below the data directory, and where its links lead. */
  function listWritable(uid: number, start = dataDir): string[] {
    return readdirSync(start).flatMap((name) => {
      const found = lstatSync(join(start, name))
      const next = found.isSymbolicLink() ? realpathSync(join(start, name)) : join(start, name)
      if (!existsSync(next) || !lstatSync(next).isDirectory() || next.startsWith(victims)) return []
      return [...(lstatSync(next).uid === uid ? [next] : []), ...listWritable(uid, next)]
    })
  }

  const names = ['daily.cvd', 'main.cld', 'x.ndb', 'clamd.conf', 'clamd.sock', 'freshclam.conf', 'database', '.x.part']
  const plant = `cd "$1" && for name in ${names.join(' ')}; do rm -rf "$name"; ln -s "$2" "$name"; done; ln -sfn "$3" directory`

  test('can plant links in its directories, and root neither reads nor writes nor removes what they point to', async () => {
    const { uid, gid } = lstatSync(join(dataDir, 'clamav', 'run'))
    assert.notEqual(uid, 0)
    const writable = listWritable(uid)
    assert.ok(writable.length >= 2, `the directories of the socket and of the scratch files: ${writable}`)
    const asUser = ['--reuid', String(uid), '--regid', String(gid), '--clear-groups', '--']
    const attack = () => {
      for (const place of writable) {
        const args = ['sh', '-c', plant, 'sh', place, join(dataDir, 'master.key'), victims]
        assert.equal(spawnSync('setpriv', [...asUser, ...args]).status, 0, place)
      }
    }

    attack()
    mkdirSync(join(dataDir, 'signatures', 'own'), { recursive: true })
    writeFileSync(join(dataDir, 'signatures', 'own', 'own.ndb'), 'Assay.Own:0:*:6173736179206f776e206d61726b6572\n')
    const scan = async () => (await clamd.engine.scan(toContent(Buffer.from('assay own marker')), noAbort)).findings
    await waitUntil('the new signature', async () => (await scan()).length === 1)
    attack()
    const before = clamd.findPid?.()
    process.kill(before ?? 0, 'SIGKILL')
    await waitUntil('another clamd', () => ![undefined, before].includes(clamd.findPid?.()))
    assert.deepEqual(await scan(), ['Assay.Own'])

    assert.equal(readFileSync(join(dataDir, 'master.key'), 'utf8'), 'the master key')
    assert.equal(lstatSync(join(dataDir, 'master.key')).mode & 0o777, 0o600)
    assert.equal(lstatSync(join(dataDir, 'master.key')).uid, 0)
    assert.equal(readFileSync(join(victims, 'daily.cvd'), 'utf8'), 'a file of root')
    const find = ['find', dataDir, ...writable, '-type', 'f', '-exec', 'grep', '-l', 'the master key', '{}', '+']
    const { stdout } = spawnSync('setpriv', [...asUser, ...find], { encoding: 'utf8' })
    assert.equal(stdout, '', 'no copy of the key can be read by the user')
  })

  test('cannot keep clamd from starting by directories that it leaves', async () => {
    const { uid, gid } = lstatSync(join(dataDir, 'clamav', 'run'))
    const before = clamd.findPid?.()
    const asUser = ['--reuid', String(uid), '--regid', String(gid), '--clear-groups', '--']
    const plantDirs = 'cd "$1" && rm -rf clamd.sock && mkdir clamd.sock && touch clamd.sock/x && chmod 300 clamd.sock'
    for (const place of listWritable(uid)) {
      const { status } = spawnSync('setpriv', [...asUser, 'sh', '-c', plantDirs, 'sh', place])
      assert.equal(status, 0, place)
    }
    process.kill(before ?? 0, 'SIGKILL')
    await waitUntil('another clamd', () => ![undefined, before].includes(clamd.findPid?.()))
    assert.deepEqual((await clamd.engine.scan(toContent(Buffer.from('harmless')), noAbort)).findings, [])
  })

  test('cannot make the service connect to the socket of another', async () => {
    const server = createServer(() => assert.fail('a connection')).listen(join(dir, 'other.sock'))
    const place = prepareClamdDir(dataDir, 'clamav-other', {
      owner: undefined,
      wrap: (command, args) => ({ command, args }),
    })
    try {
      assert.equal(takeSocket(place), false)
      symlinkSync(join(dir, 'other.sock'), place.boundSocket)
      assert.throws(() => takeSocket(place), /something else/)
      assert.equal(existsSync(place.socket), false)
      mkdirSync(join(place.boundSocket, 'inner'), { recursive: true })
      assert.throws(() => takeSocket(place), /something else/)
      assert.equal(existsSync(place.socket), false)
    } finally {
      server.close()
    }
  })
})

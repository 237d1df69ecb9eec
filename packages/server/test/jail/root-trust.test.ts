import assert from 'node:assert/strict'
import {
  chmodSync,
  chownSync,
  existsSync,
  linkSync,
  lstatSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  realpathSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { describe, type TestContext, test } from 'node:test'
import { findPostmaster } from '../../src/database/embedded/cluster.ts'
import { prepareLayout } from '../../src/database/embedded/layout.ts'
import { prepareClamdDir } from '../../src/engines/clamav/clamd-config.ts'
import { listSignatureFiles, placeSignatureFiles } from '../../src/engines/clamav/signature-files.ts'

const isRoot = process.getuid?.() === 0
const nobody = { uid: 65534, gid: 65534 }
const unprivileged = { owner: nobody, wrap: (command: string, args: string[]) => ({ command, args }) }

function newDirs(t: TestContext) {
  const dir = realpathSync(mkdtempSync(join(tmpdir(), 'assay-trust-')))
  t.after(() => rmSync(dir, { recursive: true, force: true }))
  const [official, own, shipped] = ['official', 'own', 'shipped'].map((name) => join(dir, name)) as [
    string,
    string,
    string,
  ]
  for (const path of [official, own, shipped]) mkdirSync(path)
  const secret = join(dir, 'master.key')
  writeFileSync(secret, 'secret', { mode: 0o600 })
  return {
    dir,
    dirs: { official, own, shipped, shared: join(dir, 'shared') },
    databaseDir: join(dir, 'database'),
    secret,
  }
}

describe('a service that owns secrets', () => {
  test('does not copy what a link in the directory of downloads points to', async (t) => {
    const { dirs, databaseDir, secret } = newDirs(t)
    symlinkSync(secret, join(dirs.official, 'daily.cvd'))
    symlinkSync(secret, join(dirs.official, 'x.ndb'))
    await placeSignatureFiles(listSignatureFiles(dirs), new Set(), databaseDir)
    assert.equal(existsSync(join(databaseDir, 'daily.cvd')), false)
    assert.equal(existsSync(join(databaseDir, 'fetched-x.ndb')), false)
  })

  test('does not follow a link that replaces a download after it was listed', async (t) => {
    const { dirs, databaseDir, secret } = newDirs(t)
    const download = join(dirs.official, 'daily.cvd')
    writeFileSync(download, 'harmless')
    const listed = listSignatureFiles(dirs)
    rmSync(download)
    symlinkSync(secret, download)
    await assert.rejects(placeSignatureFiles(listed, new Set(), databaseDir), /ELOOP/)
    assert.equal(existsSync(join(databaseDir, 'daily.cvd')), false)
  })

  test('does not copy a download that is a second name of another file', async (t) => {
    const { dirs, databaseDir, secret } = newDirs(t)
    linkSync(secret, join(dirs.official, 'daily.cvd'))
    await placeSignatureFiles(listSignatureFiles(dirs), new Set(), databaseDir)
    assert.equal(existsSync(join(databaseDir, 'daily.cvd')), false)
  })

  test('follows a link of the operator in the directory of own signatures', async (t) => {
    const { dir, dirs, databaseDir } = newDirs(t)
    writeFileSync(join(dir, 'rules.ndb'), 'rule')
    symlinkSync(join(dir, 'rules.ndb'), join(dirs.own, 'rules.ndb'))
    await placeSignatureFiles(listSignatureFiles(dirs), new Set(), databaseDir)
    assert.equal(readFileSync(join(databaseDir, 'own-rules.ndb'), 'utf8'), 'rule')
  })
})

describe('the directory of clamd', { skip: !isRoot }, () => {
  test('belongs to the service, and only that of the socket to clamd', (t) => {
    const { dir } = newDirs(t)
    const { dir: made, socket, boundSocket } = prepareClamdDir(dir, 'clamav', unprivileged)
    const { uid, gid, mode } = lstatSync(made)
    assert.deepEqual({ uid, gid, mode: mode & 0o777 }, { uid: 0, gid: nobody.gid, mode: 0o750 })
    assert.equal(boundSocket, join(made, 'run', 'clamd.sock'))
    assert.equal(socket, join(made, 'clamd.sock'))
    assert.deepEqual([lstatSync(join(made, 'run')).uid, lstatSync(join(made, 'run')).mode & 0o777], [nobody.uid, 0o700])
  })

  test('is made anew when another user owned it, and nothing behind a link is touched', (t) => {
    const { dir, secret } = newDirs(t)
    const planted = join(dir, 'clamav')
    mkdirSync(planted)
    symlinkSync(dir, join(planted, 'database'))
    symlinkSync(secret, join(planted, 'clamd.conf'))
    chownSync(planted, nobody.uid, nobody.gid)
    mkdirSync(join(planted, 'run'), { mode: 0o700 })
    symlinkSync(dir, join(planted, 'run', 'link'))
    chownSync(join(planted, 'run'), nobody.uid, nobody.gid)
    const { databaseDir, configFile } = prepareClamdDir(dir, 'clamav', unprivileged)
    assert.equal(existsSync(databaseDir), false)
    assert.equal(existsSync(configFile), false)
    assert.equal(readFileSync(secret, 'utf8'), 'secret')
  })

  test('is refused when the directory of the socket is open to others', (t) => {
    const { dir } = newDirs(t)
    prepareClamdDir(dir, 'clamav', unprivileged)
    chmodSync(join(dir, 'clamav', 'run'), 0o777)
    assert.throws(() => prepareClamdDir(dir, 'clamav', unprivileged), /Remove it/)
  })
})

describe('the directory of the embedded database', { skip: !isRoot }, () => {
  const see = (path: string) => [lstatSync(path).uid, lstatSync(path).mode & 0o777]

  test('belongs to the service, and only those of the cluster and the socket to the database', (t) => {
    const { dir } = newDirs(t)
    const { rootDir, socketDir, logFile, libraryLinks } = prepareLayout(dir, nobody)
    assert.deepEqual(see(rootDir), [0, 0o711])
    assert.deepEqual(see(socketDir), [nobody.uid, 0o700])
    assert.deepEqual([dirname(logFile), dirname(libraryLinks)], [rootDir, rootDir])
    mkdirSync(join(rootDir, 'cluster'))
    assert.throws(() => prepareLayout(dir, nobody), /belongs to the user with uid 0/)
  })

  test('is taken back from the user of the database', (t) => {
    const { dir } = newDirs(t)
    const { rootDir } = prepareLayout(dir, nobody)
    chownSync(rootDir, nobody.uid, nobody.gid)
    prepareLayout(dir, nobody)
    assert.deepEqual(see(rootDir), [0, 0o711])
  })

  test('names no process by a link, nor the process of another user', (t) => {
    const { dir } = newDirs(t)
    const cluster = join(dir, 'cluster')
    mkdirSync(cluster)
    // The test process takes the name of the server; the cluster belongs to its user, or to another.
    const title = process.title
    process.title = 'postgres'
    t.after(() => {
      process.title = title
    })
    writeFileSync(join(cluster, 'postmaster.pid'), `${process.pid}\n`)
    assert.equal(findPostmaster(cluster), process.pid)
    chownSync(cluster, nobody.uid, nobody.gid)
    assert.equal(findPostmaster(cluster), undefined)
    chownSync(cluster, 0, 0)
    writeFileSync(join(dir, 'pid'), `${process.pid}\n`)
    rmSync(join(cluster, 'postmaster.pid'))
    symlinkSync(join(dir, 'pid'), join(cluster, 'postmaster.pid'))
    assert.equal(findPostmaster(cluster), undefined)
  })
})

import assert from 'node:assert/strict'
import { hash, randomBytes } from 'node:crypto'
import { cpSync, existsSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { describe, type TestContext, test } from 'node:test'
import { makeMasterKey } from '../../src/blobs/master-key.ts'
import { restoreBackup } from '../../src/compose/backup/restore-backup.ts'
import { writeBackup } from '../../src/compose/backup/write-backup.ts'
import { makeSealing } from '../../src/compose/sealing.ts'
import { loadConfig } from '../../src/config/load-config.ts'
import { OperatorMistake } from '../../src/domain/problem.ts'
import { silentLog } from '../support/silent-log.ts'
import { openTestDatabase } from '../support/test-database.ts'

const { signal } = new AbortController()
const isMistake = (says: RegExp) => (error: unknown) => error instanceof OperatorMistake && says.test(error.message)

/** An installation with the key in its data directory. */
async function openInstallation(t: TestContext) {
  const database = await openTestDatabase()
  const folder = mkdtempSync(join(tmpdir(), 'assay-backup-'))
  t.after(async () => {
    rmSync(folder, { recursive: true })
    await database.drop()
  })
  const { pool } = database
  const dataDir = join(folder, 'data')
  const { config } = loadConfig({ ASSAY_DATABASE_URL: database.url, ASSAY_DATA_DIR: dataDir })
  await makeSealing(config, { pool }).getKey()
  const next = randomBytes(32)
  return {
    config,
    folder,
    backup: join(folder, 'backup'),
    keyFile: join(dataDir, 'master.key'),
    next: makeMasterKey(next),
    /** Does what a rotation does up to its commit, and leaves the new key beside the old one. */
    async commitRotation() {
      writeFileSync(join(dataDir, 'master.key.next'), next.toString('hex'))
      await pool.query('update master_key set id = $1', [makeMasterKey(next).id])
    },
  }
}

describe('the master key of a backup', () => {
  test('is not rotated meanwhile, and is the one that the tables belong to, also after an interrupted rotation', async (t) => {
    const { config, folder, backup, next, commitRotation } = await openInstallation(t)
    const options = { withMasterKey: true, signal, onTable() {}, note: commitRotation }
    const made = writeBackup(config, backup, options, silentLog)
    await assert.rejects(made, isMistake(/rotated during the backup: no backup was made/))
    assert.deepEqual(readdirSync(folder), ['data'])

    const manifest = await writeBackup(config, backup, { withMasterKey: true, signal, onTable() {} }, silentLog)
    assert.equal(manifest.masterKeyId, next.id)
    const saved = readFileSync(join(backup, 'master.key'), 'utf8')
    assert.equal(makeMasterKey(Buffer.from(saved, 'hex')).id, next.id)
  })

  test('is compared with the manifest before a restore, and does not replace a key in the data directory', async (t) => {
    const { config, folder, backup, keyFile } = await openInstallation(t)
    await writeBackup(config, backup, { withMasterKey: true, signal, onTable() {} }, silentLog)
    const changed = join(folder, 'changed')
    cpSync(backup, changed, { recursive: true })
    const other = randomBytes(32)
    writeFileSync(join(changed, 'master.key'), other.toString('hex'))
    const manifestFile = join(changed, 'manifest.json')
    const manifest = JSON.parse(readFileSync(manifestFile, 'utf8'))
    manifest.files['master.key'] = hash('sha256', other.toString('hex'))
    writeFileSync(manifestFile, JSON.stringify(manifest))
    const empty = { ...config, dataDir: join(folder, 'empty') }
    const refused = restoreBackup(empty, changed, { hasLostKey: false }, silentLog)
    const expected = `contains the master key ${makeMasterKey(other).id}, but .* sealed with ${manifest.masterKeyId}`
    await assert.rejects(refused, isMistake(new RegExp(expected)))
    assert(!existsSync(empty.dataDir))

    writeFileSync(keyFile, other.toString('hex'))
    await restoreBackup(config, backup, { hasLostKey: true }, silentLog)
    assert.equal(readFileSync(keyFile, 'utf8'), other.toString('hex'))
  })
})

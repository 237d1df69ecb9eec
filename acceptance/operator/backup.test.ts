import assert from 'node:assert/strict'
import { randomBytes } from 'node:crypto'
import { appendFileSync, cpSync, existsSync, mkdtempSync, readdirSync, rmSync, statSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, before, test } from 'node:test'
import { eicar, eicarMember, eicarSignal, newTar } from '../support/archives.ts'
import { openFakeClamd } from '../support/fake-clamd.ts'
import { copyPreparedDatabase } from '../support/prepared-database.ts'
import { runProgram } from '../support/run-program.ts'
import { alreadyTested, lacksClamAv } from '../support/scanning.ts'
import { getSharedService } from '../support/shared-service.ts'
import { startService } from '../support/start-service.ts'
import { makeCaller, toId, toResult } from '../support/submitting.ts'

const skip = alreadyTested || (await lacksClamAv(getSharedService().url))
const folder = mkdtempSync(join(tmpdir(), 'assay-backup-'))
const backup = join(folder, 'backup')
const own = { ASSAY_BOOTSTRAP_KEY: 'backup-test-key', ASSAY_NSFW_PROFILE: 'off' }
/** Large enough to be stored in a file. */
const large = newTar([{ name: 'noise', data: randomBytes(200_000) }, eicarMember])
let completed = ''
let pending = ''

/** Makes a backup while the service runs and a job waits for an engine that never answers. */
before(async () => {
  if (skip) return
  const socket = join(folder, 'clamd.sock')
  const clamd = await openFakeClamd(socket)
  copyPreparedDatabase(join(folder, 'first'))
  const service = await startService({
    ...own,
    ASSAY_CLAMD: socket,
    ASSAY_DATA_DIR: join(folder, 'first'),
    ASSAY_DRAIN_SECONDS: '1',
  })
  try {
    const caller = makeCaller(service.url, own.ASSAY_BOOTSTRAP_KEY)
    completed = toResult(await caller.sendFile('malware', 'scan', 'bad content'), 201).id
    pending = toId(await caller.sendFile('malware', 'submit', large))
    await service.operate('backup', backup)
  } finally {
    await service.stop()
    await clamd.close()
  }
})
after(() => rmSync(folder, { recursive: true }))

const restoreTo = (name: string, source = backup, ...options: string[]) =>
  runProgram({ ASSAY_DATA_DIR: join(folder, name) }, 'restore', source, ...options)

test('a restored backup has keys, credits and results, and its waiting jobs are scanned', { skip }, async () => {
  assert.equal((await restoreTo('second')).code, 0)
  const service = await startService({ ...own, ASSAY_DATA_DIR: join(folder, 'second') })
  try {
    const caller = makeCaller(service.url, own.ASSAY_BOOTSTRAP_KEY)
    const result = toResult(await caller.fetchResult('malware', completed), 200)
    assert.deepEqual([result.status, result.signals], ['threat', ['Virus:Fake.Threat']])
    const { status, signals } = await caller.complete('malware', pending)
    assert.deepEqual([status, signals], ['threat', [eicarSignal]])
    assert.equal(await caller.readSpent(), 2)
    assert.equal(toResult(await caller.sendFile('malware', 'scan', eicar), 201).status, 'threat')
    assert.equal(await caller.readSpent(), 3)
  } finally {
    await service.stop()
  }
})

test('a backup is readable by its owner alone, and complete or absent', { skip }, async () => {
  assert.equal(statSync(backup).mode & 0o777, 0o700)
  assert.equal(statSync(join(backup, 'master.key')).mode & 0o777, 0o600)
  assert.deepEqual(
    readdirSync(folder).filter((name) => name.includes('.part')),
    [],
  )
  assert.equal((await restoreTo('unused', backup, '--check')).code, 0)
  assert(!existsSync(join(folder, 'unused')), 'a check changes nothing')
})

test('a damaged or incomplete backup is refused before anything is changed', { skip }, async () => {
  const [damaged, cut, empty] = ['damaged', 'cut', 'empty'].map((name) => join(folder, name)) as [
    string,
    string,
    string,
  ]
  for (const copy of [damaged, cut]) cpSync(backup, copy, { recursive: true })
  appendFileSync(join(damaged, 'tables', 'accounts.copy.gz'), 'x')
  rmSync(join(cut, 'manifest.json'))
  for (const [source, expected] of [
    [damaged, /tables\/accounts.copy.gz of the backup is damaged/],
    [cut, /is not a complete backup/],
    [empty, /is not a complete backup/],
  ] as const) {
    const { code, err } = await restoreTo('third', source)
    assert.equal(code, 1)
    assert.match(err, expected)
    assert(!existsSync(join(folder, 'third')))
  }
})

test('restore refuses a database with accounts, and backup refuses an existing directory', { skip }, async () => {
  const { code, err } = await restoreTo('second')
  assert.equal(code, 1)
  assert.match(err, /This database already has accounts/)
  const again = await runProgram({ ASSAY_DATA_DIR: join(folder, 'second') }, 'backup', backup)
  assert.equal(again.code, 1)
  assert.match(again.err, /already exists/)
})

test('restore of a backup without the master key asks for the key', { skip }, async () => {
  const apart = join(folder, 'apart')
  const saved = await runProgram({ ASSAY_DATA_DIR: join(folder, 'second') }, 'backup', apart, '--without-master-key')
  assert.equal(saved.code, 0, saved.err)
  assert(!existsSync(join(apart, 'master.key')))
  const refused = await restoreTo('fourth', apart)
  assert.match(refused.err, /does not contain the master key/)
  const env = { ASSAY_DATA_DIR: join(folder, 'fourth'), ASSAY_MASTER_KEY: '0'.repeat(64) }
  assert.match((await runProgram(env, 'restore', apart)).err, /ASSAY_MASTER_KEY is not the key of this backup/)
})

import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import { appendFileSync, cpSync, existsSync, mkdtempSync, readdirSync, readFileSync, rmSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { after, before, test } from 'node:test'
import { setTimeout as pause } from 'node:timers/promises'
import { eicar, eicarMember, eicarSignal, newTar } from '../support/archives.ts'
import { dataRoot } from '../support/data-root.ts'
import { openFakeClamd } from '../support/fake-clamd.ts'
import { copyPreparedDatabase } from '../support/prepared-database.ts'
import { findProgramFile, runProgram } from '../support/run-program.ts'
import { alreadyTested, lacksClamAv } from '../support/scanning.ts'
import { getSharedService } from '../support/shared-service.ts'
import { makeOperate, startService } from '../support/start-service.ts'
import { makeCaller, toId, toResult } from '../support/submitting.ts'

const skip = alreadyTested || (await lacksClamAv(getSharedService().url))
const folder = mkdtempSync(join(dataRoot, 'assay-backup-'))
const backup = join(folder, 'backup')
const own = { ASSAY_BOOTSTRAP_KEY: 'backup-test-key', ASSAY_NSFW_PROFILE: 'off' }
/** Large enough to be stored in a file. */
const large = newTar([{ name: 'noise', data: randomBytes(200_000) }, eicarMember])
let completed = ''
let pending = ''
let receipt = ''

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
    receipt = await fetchReceipt(caller)
    await service.operate('backup', backup, '--with-master-key')
    const settings = { ASSAY_DATA_DIR: join(folder, 'first') }
    const { code, err } = await runProgram(settings, 'master-key', 'rotate')
    assert.equal(code, 1)
    assert.match(err, /^These nodes run: .*Stop them first/)
  } finally {
    await service.stop()
    await clamd.close()
  }
})
after(() => rmSync(folder, { recursive: true }))

async function fetchReceipt(caller: ReturnType<typeof makeCaller>): Promise<string> {
  const { metadata } = toResult(await caller.fetchResult('malware', completed, '?receipt=1'), 200)
  return metadata?.receipt ?? ''
}

const restoreTo = (name: string, source = backup, ...options: string[]) =>
  runProgram({ ASSAY_DATA_DIR: join(folder, name) }, 'restore', source, ...options)

test('a restored backup has keys, credits and results, and its waiting jobs are scanned', { skip }, async () => {
  assert.equal((await restoreTo('second')).code, 0)
  await rotateMasterKey(join(folder, 'second'))
  const service = await startService({ ...own, ASSAY_DATA_DIR: join(folder, 'second') })
  try {
    const caller = makeCaller(service.url, own.ASSAY_BOOTSTRAP_KEY)
    const result = toResult(await caller.fetchResult('malware', completed), 200)
    assert.deepEqual([result.status, result.signals], ['threat', ['Virus:Fake.Threat']])
    // The key of receipts was restored, and sealed with the new master key.
    const [head] = (await fetchReceipt(caller)).split('.')
    assert.equal(head, receipt.split('.')[0])
    const { status, signals } = await caller.complete('malware', pending)
    assert.deepEqual([status, signals], ['threat', [eicarSignal]])
    assert.equal(await caller.readSpent(), 2)
    assert.equal(toResult(await caller.sendFile('malware', 'scan', eicar), 201).status, 'threat')
    assert.equal(await caller.readSpent(), 3)
  } finally {
    await service.stop()
  }
})

/** Rotates the key of an installation with a waiting job, after rotations that were killed half-way. */
async function rotateMasterKey(dataDir: string) {
  const settings = { ASSAY_DATA_DIR: dataDir }
  const keyFile = join(dataDir, 'master.key')
  const operate = makeOperate(settings)
  const [account] = (await operate('accounts', 'list')) as { id: string }[]
  const showSecret = () => operate('webhooks', 'show-secret', '--account', account?.id ?? '')
  const before = { secret: await showSecret(), key: readFileSync(keyFile, 'utf8') }
  for (const isDue of [() => existsSync(`${keyFile}.next`), () => readFileSync(keyFile, 'utf8') !== before.key]) {
    await rotateUntil(settings, isDue)
    assert.deepEqual(await showSecret(), before.secret)
  }
  const lastKey = readFileSync(keyFile, 'utf8')
  const { old_key, new_key, jobs, old_file } = (await operate('master-key', 'rotate')) as Record<string, unknown>
  assert.notEqual(old_key, new_key)
  assert.equal(old_file, `${keyFile}.${old_key}`)
  assert.equal(readFileSync(`${keyFile}.${old_key}`, 'utf8'), lastKey)
  assert.equal(jobs, 1)
  assert.deepEqual(await showSecret(), before.secret)
  assert.notEqual(readFileSync(keyFile, 'utf8'), before.key)
  assert(!existsSync(`${keyFile}.next`))
  assert.equal(statSync(keyFile).mode & 0o777, 0o600)
  // The chain of the first installation goes on.
  const verified = (await operate('audit', 'verify')) as { fault: string | null; rows: number }
  assert.equal(verified.fault, null)
  assert.ok(verified.rows >= 4, 'the account, the backup, the restore and the rotation')
}

/** Kills a rotation as soon as it has done something, unless it ends before that is seen. */
async function rotateUntil(settings: NodeJS.ProcessEnv, isDue: () => boolean) {
  const env = { ...process.env, ...settings }
  const rotation = spawn(process.execPath, [findProgramFile('master-key'), 'master-key', 'rotate'], {
    env,
    stdio: 'ignore',
  })
  const ended = new Promise((resolve) => rotation.once('exit', resolve))
  while (!isDue() && rotation.exitCode === null) await pause(1)
  rotation.kill('SIGKILL')
  await ended
}

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
  const { code, err } = await restoreTo('first')
  assert.equal(code, 1)
  assert.match(err, /This database already has accounts/)
  const again = await runProgram({ ASSAY_DATA_DIR: join(folder, 'second') }, 'backup', backup)
  assert.equal(again.code, 1)
  assert.match(again.err, /already exists/)
})

test('restore of a backup without the master key asks for the key', { skip }, async () => {
  const apart = join(folder, 'apart')
  const saved = await runProgram({ ASSAY_DATA_DIR: join(folder, 'second') }, 'backup', apart)
  assert.equal(saved.code, 0, saved.err)
  assert(!existsSync(join(apart, 'master.key')))
  assert.match(saved.out, /you need the master key [0-9a-f]{16}, which is not part of it/)
  const refused = await restoreTo('fourth', apart)
  assert.match(refused.err, /does not contain the master key [0-9a-f]{16}\. Set ASSAY_MASTER_KEY/)
  const env = { ASSAY_DATA_DIR: join(folder, 'fourth'), ASSAY_MASTER_KEY: '0'.repeat(64) }
  assert.match((await runProgram(env, 'restore', apart)).err, /ASSAY_MASTER_KEY is not the key of this backup/)

  // Without the key, all but the sealed secrets comes back. The database may exist, as long as it is empty.
  copyPreparedDatabase(join(folder, 'fourth'))
  const restored = await restoreTo('fourth', apart, '--lost-master-key')
  assert.equal(restored.code, 0, restored.err)
  assert.match(restored.out, /master-key rotate --lost/)
  const operate = makeOperate({ ASSAY_DATA_DIR: join(folder, 'fourth') })
  const [account] = (await operate('accounts', 'list')) as { id: string }[]
  const showSecret = () => operate('webhooks', 'show-secret', '--account', account?.id ?? '')
  await assert.rejects(showSecret(), /sealed with the master key [0-9a-f]{16}, and .* is missing/)
  const rotated = await runProgram({ ASSAY_DATA_DIR: join(folder, 'fourth') }, 'master-key', 'rotate', '--lost')
  assert.match(rotated.out, /New webhook secrets: 1 account\. Removed: 0 authenticator apps\./)
  assert.match(((await showSecret()) as { webhook_secret: string }).webhook_secret, /^whsec_/)
})

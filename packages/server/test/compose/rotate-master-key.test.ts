import assert from 'node:assert/strict'
import { randomBytes } from 'node:crypto'
import { mkdtempSync, readdirSync, readFileSync, renameSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { buffer } from 'node:stream/consumers'
import { after, describe, type TestContext, test } from 'node:test'
import { v7 as newUuid } from 'uuid'
import { waitUntil } from '../../../../acceptance/support/wait-until.ts'
import { makeDiskJobContents } from '../../src/blobs/job-contents.ts'
import { makeMasterKey, openMasterKey } from '../../src/blobs/master-key.ts'
import { rotateMasterKey } from '../../src/compose/rotate-master-key.ts'
import { openStores, type Stores } from '../../src/compose/stores.ts'
import { loadConfig } from '../../src/config/load-config.ts'
import { makeAdmissionGate } from '../../src/database/admission-gate.ts'
import { makeJobStore } from '../../src/database/job-store.ts'
import { findRecordedKey } from '../../src/database/secret-stores.ts'
import { toKeyDigest } from '../../src/domain/accounts/keys.ts'
import { readHostTarget } from '../../src/domain/downloads/target.ts'
import { OperatorMistake } from '../../src/domain/problem.ts'
import { listQueues, toQueueName } from '../../src/domain/scans/jobs.ts'
import { silentLog } from '../support/silent-log.ts'
import { openTestDatabase } from '../support/test-database.ts'
import { newTestScan } from '../support/test-scan.ts'

const dir = mkdtempSync(join(tmpdir(), 'assay-rotate-'))
after(() => rmSync(dir, { recursive: true, force: true }))

/** An installation with the key in its settings, an account, a member with an authenticator app, and two jobs. */
async function openInstallation() {
  const database = await openTestDatabase()
  const keys = [randomBytes(32), randomBytes(32)] as const
  const newKeyFile = join(dir, 'new.key')
  writeFileSync(newKeyFile, keys[1].toString('hex'))
  const open = async (key: Buffer) => {
    const settings = { ASSAY_DATABASE_URL: database.url, ASSAY_MASTER_KEY: key.toString('hex') }
    // A directory of its own for each node, because only one service may use a data directory.
    const dataDir = mkdtempSync(join(dir, 'node-'))
    const { config } = loadConfig({ ...settings, ASSAY_DATABASE_CONNECTIONS: '2', ASSAY_DATA_DIR: dataDir })
    return { config, stores: await openStores(config, 'service', silentLog) }
  }
  const { config, stores } = await open(keys[0])
  const registered = await stores.registration.register({ name: 'a', plan: 'unlimited' })
  const accountId = registered.account.id
  await stores.registration.rotateWebhookSecret(accountId)
  const member = await joinConsole(stores)
  const channel = {
    id: newUuid(),
    accountId: null,
    kind: 'webhook',
    target: 'https://a.example/',
    secret: 's',
  } as const
  await stores.alerts.addChannel({ ...channel, topics: ['disk'], threatsPerHour: 1 }, 'ada')
  const target = readHostTarget('files.example.com')
  assert.ok(typeof target !== 'string')
  const values = { kind: 'headers', headers: [{ name: 'cookie', value: 'hush' }] } as const
  const credential = { id: newUuid(), target, values: { ...values, headers: [...values.headers] }, createdBy: 'ada' }
  await stores.downloadCredentials.put(accountId, credential)
  const contents = toContents(keys[0])
  const jobs = [await submit(1000), await submit(200_000)]

  async function submit(bytes: number) {
    const clear = randomBytes(bytes)
    const writer = contents.newWriter()
    await writer.write(Buffer.from(clear))
    const content = await writer.finish()
    const scanId = newUuid()
    const source = await content.persist({ accountId, scanId })
    const metadata = { hash_sha256: content.sha256 }
    const queue = toQueueName('malware', contents.toStoreId(source))
    const scan = newTestScan({ id: scanId, mode: 'async', contentLength: bytes, metadata })
    const answer = await makeAdmissionGate(stores.database).admit({
      keyDigest: toKeyDigest(registered.apiKey),
      countsRequest: true,
      scan,
      job: { queue, source, callbackUrl: null },
    })
    assert.equal(answer.outcome, 'admitted')
    await content.release()
    return { scanId, clear }
  }

  return {
    config,
    stores,
    pool: stores.database.pool,
    accountId,
    member,
    credential,
    jobs,
    rotate: ({ isLost = false, masterKey = keys[0] as Buffer } = {}) =>
      rotateMasterKey({ ...config, masterKey }, stores, { newKeyFile, isLost, note: async () => {} }),
    reopen: async () => (await open(keys[1])).stores,
    newContents: toContents(keys[1]),
    async close() {
      await stores.close()
      await database.drop()
    },
  }
}

const toContents = (key: Buffer) => makeDiskJobContents({ dir: join(dir, 'jobs'), master: makeMasterKey(key) })

async function joinConsole({ auth }: Stores) {
  const { token } = await auth.invitations.inviteOperator()
  const person = { name: 'Ada', email: 'ada@example.com', password: 'correct horse battery' }
  await auth.invitations.accept(token, person, { address: '192.0.2.1', agent: 'test' })
  const id = (await auth.members.findByEmail(person.email))?.id ?? ''
  await auth.members.confirmTotp(id, {
    secret: Buffer.from('secret of the app'),
    step: 0,
    recoveryDigests: [],
  })
  return id
}

describe('a rotation of the master key', () => {
  test('seals all secrets and waiting content again, and the old key opens nothing more', async () => {
    const old = await openInstallation()
    const secrets = await old.stores.accounts.listWebhookSecrets(old.accountId)
    assert.equal(secrets.length, 2)
    const receiptKey = await old.stores.receiptKeys.getSigningKey()
    const { accounts, members, jobs } = await old.rotate()
    assert.deepEqual({ accounts, members, jobs }, { accounts: 1, members: 1, jobs: 2 })
    await assert.rejects(old.stores.accounts.listWebhookSecrets(old.accountId), /another master key/)

    const stores = await old.reopen()
    assert.deepEqual(await stores.accounts.listWebhookSecrets(old.accountId), secrets)
    assert.equal(String(await stores.auth.members.findTotpSecret(old.member)), 'secret of the app')
    assert.deepEqual(await stores.receiptKeys.getSigningKey(), receiptKey)
    const [channel] = await stores.alerts.listChannels(null)
    assert.deepEqual([channel?.target, channel?.secret], ['https://a.example/', 's'])
    const { id: credentialId, values } = old.credential
    assert.deepEqual(await stores.downloadCredentials.open(old.accountId, credentialId), values)
    assert.equal(await old.stores.downloadCredentials.open(old.accountId, credentialId), 'sealed')
    const queues = listQueues(['malware'], old.newContents.storeIds)
    const claimed = await makeJobStore({ pool: old.pool, listQueues: () => queues }).claim(10, 30_000)
    assert.equal(claimed.length, 2)
    for (const { source, scan, accountId } of claimed) {
      assert.ok(source.at === 'row' || source.at === 'storage')
      const identity = { bytes: scan.contentLength, sha1: '', sha256: scan.metadata?.hash_sha256 ?? '' }
      const content = await old.newContents.open(source, identity, { accountId, scanId: scan.id })
      const { clear } = old.jobs.find(({ scanId }) => scanId === scan.id) ?? {}
      assert.ok((await buffer(content.read())).equals(clear ?? Buffer.alloc(0)))
      await content.release()
    }
    await assert.rejects(old.rotate(), /ASSAY_MASTER_KEY is another key/)
    await stores.close()
    await old.close()
  })

  test('changes nothing while a node runs, or when a secret does not open', async () => {
    const old = await openInstallation()
    const { pool } = old
    await pool.query(`insert into nodes (id, name, roles, version, started_at, status, reasons, engines)
      values (gen_random_uuid(), 'node-7', '{api}', '1', now(), 'ready', '{}', '[]')`)
    const isMistake = (says: RegExp) => (error: unknown) => error instanceof OperatorMistake && says.test(error.message)
    await assert.rejects(old.rotate(), isMistake(/These nodes run: node-7/))
    await pool.query('delete from nodes')
    const secret = await pool.query<{ secret: Buffer }>('select totp_secret as secret from members')
    await pool.query(`update members set totp_secret = '\\x00'`)
    await assert.rejects(old.rotate(), isMistake(/authenticator app of ada@example\.com cannot be opened/))
    await pool.query('update members set totp_secret = $1', [secret.rows[0]?.secret])
    const credential = await pool.query<{ sealed: Buffer }>('select sealed from download_credentials')
    await pool.query(`update download_credentials set sealed = '\\x00'`)
    await assert.rejects(old.rotate(), isMistake(/credential for https:\/\/files\.example\.com cannot be opened/))
    await pool.query('update download_credentials set sealed = $1', [credential.rows[0]?.sealed])
    await pool.query('update accounts set webhook_secret = previous_webhook_secret')
    await assert.rejects(old.rotate(), isMistake(/webhook secret of account [0-9a-f-]{36} cannot be opened/))
    assert.equal(String(await old.stores.auth.members.findTotpSecret(old.member)), 'secret of the app')
    await old.close()
  })

  test('keeps a channel of alerts that does not open, for its owner to remove', async () => {
    const old = await openInstallation()
    await old.pool.query(`update alert_channels set sealed = '\\x00'`)
    await old.rotate()
    const stores = await old.reopen()
    const [channel, ...others] = await stores.alerts.listChannels(null)
    assert.deepEqual([channel?.target, channel?.topics, others], [null, ['disk'], []])
    await stores.close()
    await old.close()
  })

  test('with a lost key creates new webhook secrets, removes authenticator apps and channels of alerts, and leaves the jobs to fail', async () => {
    const old = await openInstallation()
    const before = await old.stores.accounts.listWebhookSecrets(old.accountId)
    const receiptKey = await old.stores.receiptKeys.getSigningKey()
    await old.rotate({ isLost: true, masterKey: randomBytes(32) })
    const stores = await old.reopen()
    const [secret, ...others] = await stores.accounts.listWebhookSecrets(old.accountId)
    assert.match(secret ?? '', /^whsec_/)
    assert.ok(!before.includes(secret ?? ''))
    assert.deepEqual(others, [])
    assert.equal((await stores.auth.members.findMember(old.member))?.totpConfirmedAt, null)
    assert.deepEqual(await stores.alerts.listChannels(null), [])
    assert.deepEqual(await stores.downloadCredentials.list(old.accountId), [])
    // A new key signs, and the public key of the lost one still verifies.
    const nextKey = await stores.receiptKeys.getSigningKey()
    const listed = (await stores.receiptKeys.listKeys()).map(({ id }) => id)
    assert.deepEqual(listed, [nextKey.id, receiptKey.id])
    const queues = listQueues(['malware'], old.newContents.storeIds)
    const [job] = await makeJobStore({ pool: old.pool, listQueues: () => queues }).claim(1, 30_000)
    assert.ok(job?.source.at === 'row' || job?.source.at === 'storage')
    const identity = { bytes: job.scan.contentLength, sha1: '', sha256: job.scan.metadata?.hash_sha256 ?? '' }
    const opening = old.newContents.open(job.source, identity, { accountId: job.accountId, scanId: job.scan.id })
    await assert.rejects(opening, /another master key/)
    await stores.close()
    await old.close()
  })
})

/** An installation with the key in its data directory. */
async function openWithKeyFile(t: TestContext) {
  const database = await openTestDatabase()
  const dataDir = mkdtempSync(join(dir, 'data-'))
  const settings = { ASSAY_DATABASE_URL: database.url, ASSAY_DATABASE_CONNECTIONS: '4', ASSAY_DATA_DIR: dataDir }
  const { config } = loadConfig(settings)
  const stores = await openStores(config, 'service', silentLog)
  t.after(async () => {
    await stores.close()
    await database.drop()
  })
  const { master } = await stores.sealing.getKey()
  const file = join(dataDir, 'master.key')
  return {
    pool: database.pool,
    dataDir,
    file,
    master,
    rotate: ({ isLost = false } = {}) =>
      rotateMasterKey(config, stores, { newKeyFile: undefined, isLost, note: async () => {} }),
    openRecorded: async () => openMasterKey(undefined, dataDir, (await findRecordedKey(stores.database.pool))?.id),
  }
}

const listWaitingForKey = `
select from pg_locks join pg_database on pg_database.oid = database
where datname = current_database() and relation = 'master_key'::regclass and not granted
`

describe('a rotation of a master key in the data directory', () => {
  test('keeps the old key, which earlier backups need', async (t) => {
    const { dataDir, file, master, rotate, openRecorded } = await openWithKeyFile(t)
    const key = readFileSync(file, 'utf8')
    const kept = `${file}.${master.id}`
    const rotation = await rotate()
    assert.deepEqual({ file: rotation.file, oldFile: rotation.oldFile }, { file, oldFile: kept })
    assert.equal(readFileSync(kept, 'utf8'), key)
    assert.equal(statSync(kept).mode & 0o777, 0o600)
    assert.equal((await openRecorded()).id, rotation.newId)
    assert.deepEqual(readdirSync(dataDir).sort(), ['master.key', `master.key.${master.id}`, 'service.lock'])
  })

  test('with --lost is refused as long as the key is in the data directory', async (t) => {
    const { file, master, rotate } = await openWithKeyFile(t)
    const key = readFileSync(file, 'utf8')
    let place = file
    // The last two are the key of a rotation that was not finished, and a key that a rotation has kept.
    for (const name of [file, `${file}.next`, `${file}.${master.id}`]) {
      renameSync(place, name)
      place = name
      await assert.rejects(rotate({ isLost: true }), (error) => {
        return error instanceof OperatorMistake && error.message.startsWith(`The key is not lost: ${name} is`)
      })
      assert.equal(readFileSync(name, 'utf8'), key)
    }
    rmSync(place)
    assert.equal((await rotate({ isLost: true })).oldFile, undefined)
  })

  test('of two at once one commits, and its key is in the data directory', async (t) => {
    const { pool, rotate, openRecorded } = await openWithKeyFile(t)
    const blocker = await pool.connect()
    await blocker.query('begin; lock table master_key in share row exclusive mode')
    const rotations = Promise.allSettled([rotate(), rotate()])
    // Both have read the old key when both wait for the lock.
    await waitUntil('both rotations', async () => (await pool.query(listWaitingForKey)).rowCount === 2)
    await blocker.query('commit')
    blocker.release()
    const ended = await rotations
    const [rotation, ...others] = ended.filter((result) => result.status === 'fulfilled')
    assert.equal(others.length, 0)
    assert.equal((await openRecorded()).id, rotation?.value.newId)
    const refused = ended.find((result) => result.status === 'rejected')
    assert.match(refused?.reason.message, /rotated by another command/)
  })
})

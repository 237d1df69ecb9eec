import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { chmodSync, chownSync, mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, test } from 'node:test'
import { setTimeout as pause } from 'node:timers/promises'
import { copyPreparedDatabase } from '../support/prepared-database.ts'
import { findProcesses, killAll } from '../support/processes.ts'
import { programFile } from '../support/run-program.ts'
import { makeOperate, type Service, startService, withoutImages } from '../support/start-service.ts'
import { waitUntil } from '../support/wait-until.ts'

const dirs: string[] = []
after(() => dirs.forEach((dir) => void rmSync(dir, { recursive: true, force: true })))

/** Settings with a new data directory and the embedded database, which the first start creates. */
function newSettings(): { ASSAY_DATA_DIR: string; ASSAY_DATABASE_URL: string } {
  const dir = mkdtempSync(join(tmpdir(), 'assay-start-'))
  chmodSync(dir, 0o711)
  dirs.push(dir)
  return { ...withoutImages, ASSAY_DATA_DIR: join(dir, 'data'), ASSAY_DATABASE_URL: '' }
}

/** Settings with a data directory that has a database already, for tests that are not about its creation. */
function newPreparedSettings() {
  const settings = newSettings()
  copyPreparedDatabase(settings.ASSAY_DATA_DIR)
  return settings
}

const ping = async (service: Service, apiKey = service.apiKey) =>
  (await fetch(`${service.url}/v1/ping`, { headers: { 'x-api-key': apiKey } })).status

/** The kernel ends processes of a sandbox a moment after the process that started it. */
const waitForNoProcesses = (dataDir: string) =>
  waitUntil('all processes of the service to end', () => findProcesses(dataDir).length === 0)

test('the first start prints a key that works, and later starts do not print it', async () => {
  const settings = newSettings()
  const first = await startService(settings)
  const { apiKey } = first
  assert.equal(await ping(first), 200)
  await first.stop('SIGINT')
  const second = await startService(settings)
  assert.equal(second.apiKey, undefined)
  assert.equal(await ping(second, apiKey), 200)
  await second.stop()
})

test('the first account has the key and the webhook secret that the operator configured', async () => {
  const given = { ASSAY_BOOTSTRAP_KEY: 'operators-own-key', ASSAY_BOOTSTRAP_WEBHOOK_SECRET: 'operators-own-secret' }
  const service = await startService({ ...newPreparedSettings(), ...given })
  assert.equal(await ping(service, 'operators-own-key'), 200)
  await service.stop()
})

test('a stop ends everything that was started', async () => {
  const settings = newPreparedSettings()
  const service = await startService(settings)
  assert.ok(findProcesses(settings.ASSAY_DATA_DIR).length > 0)
  await service.stop('SIGINT')
  await waitForNoProcesses(settings.ASSAY_DATA_DIR)
})

test('a service stops when nothing reads its output', async () => {
  const env = { ...process.env, ...newPreparedSettings(), ASSAY_PORT: '0' }
  const service = spawn(process.execPath, [programFile, 'serve', '--test', '--json'], { env })
  const ended = new Promise((resolve) => service.once('exit', resolve))
  await new Promise((resolve) => service.stdout.once('data', resolve))
  service.stdout.destroy()
  service.stderr.destroy()
  service.kill('SIGTERM')
  const end = await Promise.race([ended, pause(20_000, 'still running')])
  service.kill('SIGKILL')
  assert.equal(end, 0)
})

test('a request that runs when the service is stopped gets its response', async () => {
  const service = await startService(newPreparedSettings())
  const body = new TransformStream<Uint8Array, Uint8Array>()
  const writer = body.writable.getWriter()
  const answer = fetch(`${service.url}/v1/malware/scan/url`, {
    method: 'POST',
    headers: { 'x-api-key': service.apiKey, 'content-type': 'application/json' },
    body: body.readable,
    duplex: 'half',
  } as RequestInit)
  await writer.write(Buffer.from('{"file_url":'))
  await waitUntil('the request is being read', async () => (await ping(service)) === 200)
  const stopped = service.stop()
  await waitUntil('new connections are refused', () =>
    ping(service).then(
      () => false,
      () => true,
    ),
  )
  await writer.write(Buffer.from('""}'))
  await writer.close()
  assert.equal((await answer).status, 422)
  await stopped
})

test('a second service on the same data directory is refused, and the first goes on', async () => {
  const settings = newPreparedSettings()
  const first = await startService(settings)
  await assert.rejects(startService(settings), /already running on .* \(process \d+\)\. Stop it first/)
  assert.equal(await ping(first), 200)
  await first.stop()
})

test('a start after kill -9 of the service joins its database and stops it in the end', async () => {
  const settings = newPreparedSettings()
  const first = await startService(settings)
  const { apiKey } = first
  await first.stop('SIGKILL')
  assert.ok(findProcesses(settings.ASSAY_DATA_DIR).length > 0, 'the database is left behind')
  const second = await startService(settings)
  assert.equal(await ping(second, apiKey), 200)
  await second.stop()
  await waitForNoProcesses(settings.ASSAY_DATA_DIR)
})

test('a start after kill -9 of the service and its database works', async () => {
  const settings = newPreparedSettings()
  const first = await startService(settings)
  const { apiKey } = first
  const children = findProcesses(settings.ASSAY_DATA_DIR)
  await first.stop('SIGKILL')
  killAll(children)
  const second = await startService(settings)
  assert.equal(await ping(second, apiKey), 200)
  await second.stop()
})

test('the service restarts a database that dies', async () => {
  const settings = newPreparedSettings()
  const service = await startService(settings)
  killAll(findProcesses(settings.ASSAY_DATA_DIR))
  await waitUntil('the service answers again', async () => (await ping(service).catch(() => 0)) === 200)
  await service.stop()
  await waitForNoProcesses(settings.ASSAY_DATA_DIR)
})

test('operator commands work without a service and leave nothing running', async () => {
  const settings = newSettings()
  const operate = makeOperate(settings)
  const { api_key } = (await operate('accounts', 'create', '--name', 'early')) as { api_key: string }
  await waitForNoProcesses(settings.ASSAY_DATA_DIR)
  const service = await startService(settings)
  assert.equal(service.apiKey, undefined, 'there is an account already')
  assert.equal(await ping(service, api_key), 200)
  await service.stop()
})

test('a service started as root runs the database as another user, even below a directory that only root can enter', {
  skip: !isRoot(),
}, async () => {
  const settings = newSettings()
  chmodSync(join(settings.ASSAY_DATA_DIR, '..'), 0o700)
  const service = await startService(settings)
  const owners = findProcesses(`${settings.ASSAY_DATA_DIR}/postgres/cluster`).map(readOwner)
  assert.ok(owners.length > 0 && owners.every((uid) => uid !== 0))
  assert.equal(await ping(service), 200)
  await service.stop()
})

test('an ordinary user can start the service', { skip: !isRoot() }, async () => {
  const nobody = 65534
  const settings = newSettings()
  chownSync(join(settings.ASSAY_DATA_DIR, '..'), nobody, nobody)
  const child = spawn(process.execPath, [programFile, 'serve', '--json'], {
    uid: nobody,
    gid: nobody,
    env: { PATH: process.env.PATH, ASSAY_PORT: '0', ...settings },
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  const { url, api_key } = await new Promise<{ url: string; api_key: string }>((resolve, reject) => {
    child.stdout.once('data', (text: Buffer) => resolve(JSON.parse(text.toString())))
    child.once('exit', (code) => reject(new Error(`ended with ${code}`)))
  })
  const answer = await fetch(`${url}/v1/ping`, { headers: { 'x-api-key': api_key } })
  assert.equal(answer.status, 200)
  child.kill('SIGTERM')
  await new Promise((resolve) => child.once('exit', resolve))
  await waitForNoProcesses(settings.ASSAY_DATA_DIR)
})

function isRoot() {
  return process.getuid?.() === 0
}

function readOwner(pid: number): number {
  return Number(/^Uid:\s+(\d+)/m.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))?.[1])
}

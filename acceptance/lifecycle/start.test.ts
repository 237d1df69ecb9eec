import assert from 'node:assert/strict'
import { spawn, spawnSync } from 'node:child_process'
import { chmodSync, chownSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { text } from 'node:stream/consumers'
import { after, describe, test } from 'node:test'
import { newZip } from '../support/archives.ts'
import { makeAdmin } from '../support/console.ts'
import { copyPreparedDatabase } from '../support/prepared-database.ts'
import { findProcesses, killAll } from '../support/processes.ts'
import { findProgramFile, runAlone } from '../support/run-program.ts'
import { toVerdict, uploadTo } from '../support/scanning.ts'
import { type Service, startService, withoutImages } from '../support/start-service.ts'
import { waitUntil } from '../support/wait-until.ts'

const cannotMount = !isRoot() || spawnSync('unshare', ['--mount', 'mount', '--bind', '/tmp', '/tmp']).status !== 0
const nobodyId = 65534
const asNobody = ['setpriv', `--reuid=${nobodyId}`, `--regid=${nobodyId}`, '--clear-groups', '--']
const [setpriv = '', ...setprivOptions] = asNobody
/** Tells whether root runs the tests, and the user `nobody` has this permission for the file. */
const isAllowedToNobody = (permission: '-r' | '-w', file: string) =>
  isRoot() && spawnSync(setpriv, [...setprivOptions, 'test', permission, file]).status === 0
const programFile = findProgramFile('serve')
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

/** For services that scan nothing: in test mode no engine starts. */
const inTestMode = { options: ['--test'] }

const ping = async (service: Service, apiKey = service.apiKey) =>
  (await fetch(`${service.url}/v1/ping`, { headers: { 'x-api-key': apiKey } })).status

/** The kernel ends processes of a sandbox a moment after the process that started it. */
const waitForNoProcesses = (dataDir: string) =>
  waitUntil('all processes of the service to end', () => findProcesses(dataDir).length === 0)

test('a service with a given key prints no secret, and stops when nothing reads its output', async () => {
  const key = 'operators-own-key'
  const env = { ...process.env, ...newPreparedSettings(), ASSAY_PORT: '0', ASSAY_BOOTSTRAP_KEY: key }
  const service = spawn(process.execPath, [programFile, 'serve', '--test'], { env })
  let end: number | null | undefined
  service.once('exit', (code) => {
    end = code
  })
  let greeting = ''
  service.stdout.setEncoding('utf8').on('data', (text: string) => {
    greeting += text
  })
  await waitUntil('the greeting', () => greeting.includes('/v1/me'))
  assert.match(greeting, /run: npm run assay -- operators invite\n/)
  assert.match(greeting, /run: npm run assay -- webhooks show-secret --account [0-9a-f-]{36}\n/)
  for (const secret of [/whsec_/, /welcome#/, /assay_test_/, new RegExp(key)]) assert.doesNotMatch(greeting, secret)
  service.stdout.destroy()
  service.stderr.destroy()
  service.kill('SIGTERM')
  await waitUntil('the service to end', () => end !== undefined).finally(() => service.kill('SIGKILL'))
  assert.equal(end, 0)
})

test('the first account has the key that the operator configured, and commands print the other secrets', async () => {
  const key = 'operators-own-key'
  const service = await startService({ ...newPreparedSettings(), ASSAY_BOOTSTRAP_KEY: key }, 'kept', inTestMode)
  assert.equal(await ping(service, key), 200)
  const { apiKey, webhookSecret, consoleLink } = service
  assert.deepEqual([apiKey, webhookSecret, consoleLink], [undefined, undefined, undefined])
  const [account] = (await service.operate('accounts', 'list')) as { id: string }[]
  const shown = await service.operate('webhooks', 'show-secret', '--account', account?.id ?? '')
  assert.match((shown as { webhook_secret: string }).webhook_secret, /^whsec_[A-Za-z0-9+/]{43}=$/)
  // The operator who accepts the first invitation owns the first account, as with a link that the service prints.
  const { path } = (await service.operate('operators', 'invite')) as { path: string }
  const link = await fetch(`${service.url}/admin/v1/link`, {
    method: 'POST',
    headers: { 'content-type': 'application/json', origin: service.url },
    body: JSON.stringify({ token: path.split('#')[1] }),
  })
  assert.equal(link.status, 200)
  const { role, account_name } = (await link.json()) as { role: string; account_name: string }
  assert.deepEqual([role, account_name], ['operator', 'first account'])
  await service.stop()
})

describe('a data directory that cannot be used is explained in one sentence', () => {
  /** The command before which a new file system is mounted, which no other process sees. */
  const withMount = (dir: string, options: string) => {
    const script = `mount -t tmpfs -o ${options} none "$0" && exec "$@"`
    return ['unshare', '--mount', ...(process.getuid?.() === 0 ? [] : ['--map-root-user']), 'sh', '-c', script, dir]
  }
  const lacksMounts = spawnSync('unshare', withMount(tmpdir(), 'ro').slice(1).concat('true')).status !== 0

  async function assertExplained(dataDir: string, sentence: RegExp, wrapper: string[] = []) {
    const [command = '', ...args] = [...wrapper, process.execPath, programFile, 'serve', '--test']
    const service = spawn(command, args, { env: { ...process.env, ...newSettings(), ASSAY_DATA_DIR: dataDir } })
    const ended = new Promise((resolve) => service.once('exit', resolve))
    const [said, code] = [(await text(service.stderr)).trim(), await ended]
    assert.match(said, sentence)
    assert.match(said, /set ASSAY_DATA_DIR to another directory\.$/)
    assert.equal(code, 1)
  }
  const newDir = () => dirname(newSettings().ASSAY_DATA_DIR)

  test('a file', async () => {
    const file = join(newDir(), 'file')
    writeFileSync(file, '')
    const sentence = /^\S+ cannot be the data directory, because a part of this path is a file/
    for (const dataDir of [file, join(file, 'data')]) await assertExplained(dataDir, sentence)
  })

  test('a file system that is read-only', { skip: lacksMounts }, async () => {
    const dir = newDir()
    const sentence = /^The data directory \S+ is on a file system that is mounted read-only\./
    for (const dataDir of [dir, join(dir, 'data')]) await assertExplained(dataDir, sentence, withMount(dir, 'ro'))
  })

  test('a full disk', { skip: lacksMounts }, async () => {
    const dir = newDir()
    const sentence = /^The disk of the data directory \S+\/data is full\./
    await assertExplained(join(dir, 'data'), sentence, withMount(dir, 'size=30m,mode=711'))
  })

  test('a directory of another user', { skip: !isAllowedToNobody('-r', programFile) }, async () => {
    const closed = join(newDir(), 'closed')
    mkdirSync(closed, { mode: 0o700 })
    for (const dataDir of [closed, join(closed, 'data')]) {
      await assertExplained(dataDir, /^The user with the id 65534 may not use /, asNobody)
    }
  })
})

test('a read-only /tmp breaks nothing, not even with a long path of the data directory', {
  skip: cannotMount,
}, async () => {
  const dir = mkdtempSync('/var/tmp/assay-start-')
  chmodSync(dir, 0o711)
  dirs.push(dir)
  const dataDir = join(dir, 'a-long-name'.repeat(8))
  copyPreparedDatabase(dataDir)
  const token = 'token-of-the-operator-of-this-test'
  const script = 'mount --bind /tmp /tmp && mount -o remount,bind,ro /tmp && exec "$@"'
  const service = await startService(
    { ...withoutImages, ASSAY_DATA_DIR: dataDir, ASSAY_DATABASE_URL: '', ASSAY_ADMIN_TOKEN: token, TMPDIR: '/tmp' },
    'kept',
    { under: ['unshare', '--mount', 'sh', '-c', script, 'sh'] },
  )
  try {
    const admin = makeAdmin(service.url, token)
    const mark = `read-only ${dir}`
    const rule = `rule read_only { strings: $a = "${mark}" condition: $a }`
    const headers = { 'content-type': 'application/octet-stream' }
    const placed = await admin.send(admin.token, 'PUT', '/operator/signatures/read-only.yar', { body: rule, headers })
    assert.equal(placed.status, 200, placed.text)
    const scan = async () => toVerdict(await uploadTo(service.url, service.apiKey, newZip([{ name: 'a', data: mark }])))
    await waitUntil('the rule to be in use', async () => (await scan()).status === 'threat')
    assert.doesNotMatch(service.log(), /"level":"(error|fatal)"|EROFS/)
  } finally {
    await service.stop()
  }
})

/** Each test leaves the service running for the next one: a start takes more than a second of processor time. */
describe('one data directory', () => {
  const settings = newSettings()
  const list = () => findProcesses(settings.ASSAY_DATA_DIR)
  let service: Service
  let apiKey = ''

  test('the first start prints a key that works', async () => {
    chmodSync(dirname(settings.ASSAY_DATA_DIR), 0o700)
    service = await startService(settings)
    apiKey = service.apiKey
    assert.equal(await ping(service), 200)
  })

  test('the database of root runs as another user, even below a directory that only root can enter', {
    skip: !isRoot(),
  }, () => {
    const owners = findProcesses(`${settings.ASSAY_DATA_DIR}/postgres/cluster`).map(readOwner)
    assert.ok(owners.length > 0 && owners.every((uid) => uid !== 0))
  })

  test('a second service on the same data directory is refused, and the first goes on', async () => {
    await assert.rejects(startService(settings), /already running on .* \(process \d+\)\. Stop it first/)
    assert.equal(await ping(service, apiKey), 200)
  })

  test('the service restarts a database that dies, and lets no other service in meanwhile', async () => {
    killAll(list())
    await assert.rejects(startService(settings), /already running on .* \(process \d+\)\. Stop it first/)
    await waitUntil('the service answers again', async () => (await ping(service, apiKey).catch(() => 0)) === 200)
  })

  test('a start after kill -9 of the service and its database works, and prints no key again', async () => {
    const children = list()
    await service.stop('SIGKILL')
    killAll(children)
    service = await startService(settings)
    assert.equal(service.apiKey, undefined)
    assert.equal(await ping(service, apiKey), 200)
  })

  test('a start after kill -9 of the service joins its database', async () => {
    await service.stop('SIGKILL')
    assert.ok(list().length > 0, 'the database is left behind')
    service = await startService(settings)
    assert.equal(await ping(service, apiKey), 200)
  })

  test('a request that runs when the service is stopped gets its response, and the stop ends everything', async () => {
    const body = new TransformStream<Uint8Array, Uint8Array>()
    const writer = body.writable.getWriter()
    const answer = fetch(`${service.url}/v1/malware/scan/url`, {
      method: 'POST',
      headers: { 'x-api-key': apiKey, 'content-type': 'application/json' },
      body: body.readable,
      duplex: 'half',
    } as RequestInit)
    await writer.write(Buffer.from('{"file_url":'))
    await waitUntil('the request is being read', async () => (await ping(service, apiKey)) === 200)
    assert.ok(list().length > 0)
    const stopped = service.stop('SIGINT')
    await waitUntil('new connections are refused', () =>
      ping(service, apiKey).then(
        () => false,
        () => true,
      ),
    )
    await writer.write(Buffer.from('""}'))
    await writer.close()
    assert.equal((await answer).status, 422)
    await stopped
    await waitForNoProcesses(settings.ASSAY_DATA_DIR)
  })
})

test('operator commands work without a service and leave nothing running', async () => {
  const settings = newSettings()
  const { out, err } = await runAlone(settings, 'accounts', 'create', '--name', 'early', '--json')
  const { api_key } = JSON.parse(out || assert.fail(err)) as { api_key: string }
  await waitForNoProcesses(settings.ASSAY_DATA_DIR)
  const service = await startService(settings)
  assert.equal(service.apiKey, undefined, 'there is an account already')
  assert.equal(await ping(service, api_key), 200)
  await service.stop()
})

test('an ordinary user can start the service of an installation that only root can write', {
  skip: !isAllowedToNobody('-r', programFile) || isAllowedToNobody('-w', dirname(programFile)),
}, async () => {
  const settings = newSettings()
  chownSync(dirname(settings.ASSAY_DATA_DIR), nobodyId, nobodyId)
  const service = await startService(settings, 'kept', { under: asNobody })
  assert.equal(readOwner(service.pid), nobodyId)
  assert.equal(await ping(service), 200)
  assert.doesNotMatch(service.log(), /EACCES/)
  await service.stop()
  await waitForNoProcesses(settings.ASSAY_DATA_DIR)
})

function isRoot() {
  return process.getuid?.() === 0
}

function readOwner(pid: number): number {
  return Number(/^Uid:\s+(\d+)/m.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))?.[1])
}

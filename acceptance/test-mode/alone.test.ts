import assert from 'node:assert/strict'
import { execFile, spawn } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, before, describe, test } from 'node:test'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { type Installation, openInstallation } from '../support/chaos-installation.ts'
import { maskVariables, readCodeBlocks } from '../support/code-blocks.ts'
import { getTaker } from '../support/document-runners.ts'
import { images } from '../support/forms.ts'
import { world } from '../support/origin.ts'
import { copyPreparedDatabase } from '../support/prepared-database.ts'
import { findChildren, findProcesses } from '../support/processes.ts'
import { openReceiver, verifyDelivery } from '../support/receiver.ts'
import { runProgram } from '../support/run-program.ts'
import { alreadyTested, toVerdict } from '../support/scanning.ts'
import { makeOperate } from '../support/start-service.ts'
import { makeCaller, toId, toResult } from '../support/submitting.ts'
import { waitUntil } from '../support/wait-until.ts'

const repository = fileURLToPath(new URL('../../', import.meta.url))
const free = { ASSAY_PORT: '0', ASSAY_METRICS_PORT: '0' }
const apiKey = 'test-mode-test-key'
const secret = `whsec_${randomBytes(32).toString('base64')}`

describe('a service in test mode alone', { skip: alreadyTested }, () => {
  let installation: Installation
  let receiver: Awaited<ReturnType<typeof openReceiver>>
  let caller: ReturnType<typeof makeCaller>
  before(async () => {
    receiver = await openReceiver()
    const keys = { ASSAY_BOOTSTRAP_KEY: apiKey, ASSAY_BOOTSTRAP_WEBHOOK_SECRET: secret }
    const own = { ...keys, ASSAY_OUTBOUND_ALLOW: world, ASSAY_HTTP_PROCESSES: '1' }
    installation = await openInstallation(own, { options: ['--test'] })
    caller = makeCaller(installation.url, apiKey)
  })
  after(async () => {
    await installation.remove()
    await receiver.close()
  })

  test('reports its mode and starts no engine', async () => {
    const readiness = await (await fetch(`${installation.url}/readyz`)).json()
    const { status, mode, checks, engines } = readiness as Record<string, unknown>
    assert.deepEqual(
      { status, mode, checks, engines },
      {
        status: 'ready',
        mode: 'test mode',
        checks: { database: 'ok', clock: 'ok', 'master key': 'ok', disk: 'ok' },
        engines: [],
      },
    )
    await waitUntil('the log', () => /Test mode: nothing is scanned/.test(installation.log()))
    // The database is the only child process.
    assert.deepEqual(
      findChildren(installation.pid(), '').filter((pid) => !findChildren(installation.pid(), 'postgres').includes(pid)),
      [],
    )
    assert.equal(toVerdict(await caller.sendFile('malware', 'scan', 'x')).metadata.test, 'true')
  })

  test('sends signed webhooks for all four submit operations', async () => {
    const fields = { callback_url: `${receiver.url}/all` }
    const answers = [
      await caller.sendFile('malware', 'submit', 'x', { ...fields, file_name: 'assay-test-threat.txt' }),
      await caller.sendFile('nsfw/images', 'submit', images['one.png'], {
        ...fields,
        file_name: 'assay-test-sexy.png',
      }),
      await caller.sendUrl('malware', 'submit', 'https://files.example.com/assay-test-download-failed', fields),
      await caller.sendUrl('nsfw/images', 'submit', 'https://files.example.com/assay-test-engine-failed', fields),
    ]
    await waitUntil('all webhooks', () => receiver.at('/all').length === answers.length)
    const results = receiver.at('/all').map((delivery) => verifyDelivery(delivery, secret))
    const signals = answers.map((answer) => results.find(({ id }) => id === toId(answer))?.signals?.[0])
    const expected = 'Virus:Eicar-Test-Signature Classification:sexy Error:DownloadFailed Error:EngineFailed'
    assert.deepEqual(signals, expected.split(' '))
    assert(results.every(({ metadata }) => metadata?.test === 'true'))
  })

  test('loses no delayed job in a crash, and completes it when its delay is over', async () => {
    const submit = async (name: string) =>
      toId(await caller.sendFile('malware', 'submit', 'x', { file_name: name, callback_url: `${receiver.url}/held` }))
    const [slow, pending] = [await submit('assay-test-slow'), await submit('assay-test-pending')]
    await installation.faults.everything()
    assert.equal(toResult(await caller.fetchResult('malware', pending), 200).status, 'pending')
    const { status, created_at, completed_at } = await caller.complete('malware', slow)
    assert.equal(status, 'clean')
    assert(Date.parse(completed_at ?? '') - Date.parse(created_at) >= 5000)
    await waitUntil('its webhook', () => receiver.at('/held').length > 0)
    const [delivery] = receiver.at('/held')
    assert.equal(delivery && verifyDelivery(delivery, secret).id, slow)
    assert.equal(toResult(await caller.fetchResult('malware', pending), 200).status, 'pending')
    assert.equal(await caller.readSpent(), 0)
  })

  test('responds as docs/test-mode.md shows', async () => {
    const [, , ...examples] = readCodeBlocks('docs/test-mode.md')
    const takes = getTaker('docs/test-mode.md', import.meta.filename)
    const dir = mkdtempSync(join(tmpdir(), 'assay-examples-'))
    let count = 0
    for (const [n, example] of examples.entries()) {
      if (!takes(example)) continue
      const command = example.text
        .replaceAll(/assay_test_[0-9A-Za-z]{38}/g, apiKey)
        .replaceAll('http://127.0.0.1:8080', installation.url)
      const { stdout } = await promisify(execFile)('sh', ['-ec', command], { cwd: dir })
      assert.deepEqual(toComparable(stdout), toComparable(examples[n + 1]?.text ?? ''))
      count++
    }
    assert.equal(count, 3)
    rmSync(dir, { recursive: true, force: true })
  })

  test('prints at its start what docs/test-mode.md shows', async () => {
    const [start, greeting] = readCodeBlocks('docs/test-mode.md')
    const command = start?.text.trim().replace('npm ci && ', 'exec ') ?? ''
    assert.equal(command, 'exec npm start -- --test')
    const dir = mkdtempSync(join(tmpdir(), 'assay-greeting-'))
    copyPreparedDatabase(join(dir, 'data'))
    const env = { ...process.env, ...free, ASSAY_DATA_DIR: join(dir, 'data'), ASSAY_DATABASE_URL: '' }
    const child = spawn('sh', ['-c', command], { cwd: repository, env, stdio: ['ignore', 'pipe', 'ignore'] })
    const ended = new Promise((resolve) => child.once('exit', resolve))
    let said = ''
    child.stdout.setEncoding('utf8').on('data', (text) => {
      said += text
    })
    await waitUntil('the greeting', () => said.includes('/v1/me') || child.exitCode !== null, 60_000)
    child.kill()
    await ended
    await waitUntil('all of it to end', () => findProcesses(dir).length === 0)
    rmSync(dir, { recursive: true, force: true })
    assert.equal(maskVariables(said.slice(said.indexOf('Assay '))), maskVariables(greeting?.text ?? ''))
  })

  test('cannot become an installation that scans, nor use the database of one', async () => {
    await installation.stop()
    const scanning = await runProgram(
      { ASSAY_DATA_DIR: installation.dataDir, ASSAY_DATABASE_URL: '', ...free },
      'serve',
    )
    assert.equal(scanning.code, 1)
    assert.match(scanning.err, /^This database belongs to a test installation.*\n$/)

    const dir = mkdtempSync(join(tmpdir(), 'assay-production-'))
    copyPreparedDatabase(join(dir, 'data'))
    const production = { ASSAY_DATA_DIR: join(dir, 'data'), ASSAY_DATABASE_URL: '', ...free }
    await makeOperate(production)('accounts', 'create', '--name', 'production')
    const testing = await runProgram(production, 'serve', '--test')
    rmSync(dir, { recursive: true, force: true })
    assert.equal(testing.code, 1)
    assert.match(testing.err, /^This database belongs to an installation that scans.*\n$/)
    assert.equal(testing.out, '')
  })
})

/** Replaces what differs between two runs, such as trace ids. */
const toComparable = (json: string): unknown =>
  JSON.parse(maskVariables(json).replaceAll(/00-[0-9a-f]{32}-[0-9a-f]{16}-01/g, 'TRACE'))

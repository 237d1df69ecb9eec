import assert from 'node:assert/strict'
import { chmodSync, existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { describe, type TestContext, test } from 'node:test'
import { isRunning } from '../../../../acceptance/support/processes.ts'
import { openUpdater, type UpdateResult } from '../../src/engines/clamav/freshclam.ts'
import { findProgram } from '../../src/engines/clamav/installation.ts'
import { launcherDirs } from '../../src/engines/jail/jail.ts'
import { chooseUnprivileged, type Unprivileged } from '../../src/runtime/process.ts'
import { silentLog } from '../support/silent-log.ts'
import { waitFor } from '../support/wait-for.ts'

const freshclam = findProgram('freshclam')
const skip = freshclam === undefined && 'freshclam is not installed: apt-get install clamav-freshclam'
const asWeAre: Unprivileged = { owner: undefined, wrap: (command, args) => ({ command, args }) }
const signature = 'Test.FromUrl:0:*:6173736179\n'

function newDir(t: TestContext): string {
  const dir = mkdtempSync(join(tmpdir(), 'assay-freshclam-'))
  chmodSync(dir, 0o755)
  t.after(() => rmSync(dir, { recursive: true, force: true }))
  return dir
}

type Setup = {
  binary?: string
  dir?: string
  user?: Unprivileged
  mirror?: string
  urls?: string[]
  everyHours?: number
}

/** An updater that runs at once, and the results of its runs. */
function openTestUpdater(t: TestContext, setup: Setup) {
  t.mock.timers.enable({ apis: ['setTimeout', 'setInterval'] })
  const officialDir = join(setup.dir ?? newDir(t), 'official')
  const results: UpdateResult[] = []
  const updater = openUpdater({
    binary: setup.binary ?? '',
    officialDir,
    user: setup.user ?? asWeAre,
    everyHours: setup.everyHours ?? 4,
    mirror: setup.mirror ?? 'http://127.0.0.1:1',
    urls: setup.urls ?? [],
    onRun: (result) => results.push(result),
    log: silentLog,
    // A script in the place of freshclam needs a shell, which the jail does not allow.
    ...(setup.binary === freshclam ? {} : { toLaunch: ({ binary }, _, args) => ({ command: binary, args }) }),
  })
  t.after(updater.close)
  return { updater, officialDir, results, passHours: (hours: number) => t.mock.timers.tick(hours * 3_600_000) }
}

/** The timer that no test mocks. */
const setRealTimeout = setTimeout

/** `waitFor` on the clock that is not mocked. */
async function until(isSo: () => boolean) {
  const end = performance.now() + 30_000
  while (!isSo()) {
    assert.ok(performance.now() < end, `not so in time: ${isSo}`)
    await new Promise((resolve) => setRealTimeout(resolve, 5))
  }
}

/** Writes a program that replaces freshclam and prints chosen messages. */
function writeProgram(t: TestContext, script: string): string {
  const path = join(newDir(t), 'freshclam')
  writeFileSync(path, `#!/bin/sh\n${script}\n`, { mode: 0o755 })
  return path
}

describe('the updater', { timeout: 60_000 }, () => {
  test('fetches a file from an address of the operator’s, though the mirror is away', { skip }, async (t) => {
    const asked: string[] = []
    const server = createServer((request, response) => {
      asked.push(request.url ?? '')
      response.end(request.method === 'HEAD' ? undefined : signature)
    })
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
    t.after(() => server.close())
    const { port } = server.address() as AddressInfo
    const dir = newDir(t)
    const user = chooseUnprivileged('engine', ['clamav', 'nobody'], [dirname(freshclam ?? ''), dir, ...launcherDirs])
    const urls = [`http://127.0.0.1:${port}/from-url.ndb`]
    const { officialDir, results } = openTestUpdater(t, { binary: freshclam ?? '', dir, user, urls })
    t.mock.timers.tick(5000)
    await until(() => results.length === 1)
    t.diagnostic(JSON.stringify(results[0]))
    t.diagnostic(`asked: ${asked.join()}`)
    assert.equal(readFileSync(join(officialDir, 'from-url.ndb'), 'utf8'), signature)
    // The official part failed, and the result says so.
    assert.equal(results[0]?.ok, false)
    if (user.owner !== undefined) assert.equal(statSync(officialDir).uid, user.owner.uid)
  })

  test('runs soon after the start and then every so many hours, one at a time', async (t) => {
    const dir = newDir(t)
    const [runs, go] = [join(dir, 'runs'), join(dir, 'go')]
    const binary = writeProgram(t, `echo run >> ${runs}; while [ ! -e ${go} ]; do sleep 0.01; done`)
    const { results, passHours } = openTestUpdater(t, { binary, dir, everyHours: 2 })
    const count = () => (existsSync(runs) ? readFileSync(runs, 'utf8').split('\n').length - 1 : 0)
    t.mock.timers.tick(4999)
    assert.equal(count(), 0)
    t.mock.timers.tick(1)
    await until(() => count() === 1)
    // The first run has not ended.
    passHours(2)
    passHours(2)
    writeFileSync(go, '')
    await until(() => results.length === 1)
    assert.equal(count(), 1)
    passHours(2)
    await until(() => results.length === 2)
    assert.equal(count(), 2)
    assert.ok(results.every(({ ok }) => ok))
  })

  test('tells what went wrong in the last words of the program', async (t) => {
    const binary = writeProgram(
      t,
      "echo 'a line'; echo 'ERROR: first'; echo 'WARNING: Cannot reach the mirror' >&2; exit 58",
    )
    const { results, updater } = openTestUpdater(t, { binary })
    t.mock.timers.tick(5000)
    await until(() => results.length === 1)
    assert.equal(results[0]?.ok, false)
    assert.match(results[0]?.message ?? '', /Cannot reach the mirror/)
    assert.deepEqual(updater.findLast(), results[0])
  })

  test('survives a directory that cannot be written: the service goes on', async (t) => {
    const dir = newDir(t)
    writeFileSync(join(dir, 'official'), 'a file is in the way')
    const { results } = openTestUpdater(t, { binary: writeProgram(t, 'exit 0'), dir })
    assert.doesNotThrow(() => t.mock.timers.tick(5000))
    await until(() => results.length === 1)
    assert.equal(results[0]?.ok, false)
  })

  test('ends its program when it is closed', async (t) => {
    const dir = newDir(t)
    mkdirSync(dir, { recursive: true })
    const pidFile = join(dir, 'pid')
    const binary = writeProgram(t, `echo $$ > ${pidFile}.part; mv ${pidFile}.part ${pidFile}; exec sleep 60`)
    const { updater } = openTestUpdater(t, { binary, dir })
    t.mock.timers.tick(5000)
    await until(() => existsSync(pidFile))
    const pid = Number(readFileSync(pidFile, 'utf8'))
    updater.close()
    t.mock.timers.reset()
    await waitFor(() => !isRunning(pid))
  })
})

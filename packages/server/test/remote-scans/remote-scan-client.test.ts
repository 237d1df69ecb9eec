import assert from 'node:assert/strict'
import { hash, randomUUID } from 'node:crypto'
import { mkdtempSync, readdirSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, afterEach, before, describe, test } from 'node:test'
import { makeDiskJobContents } from '../../src/blobs/job-contents.ts'
import { openMasterKey } from '../../src/blobs/master-key.ts'
import { sweepRemoteScans } from '../../src/compose/cleanup-tasks.ts'
import { openNotifications } from '../../src/database/notifications.ts'
import { makeRemoteScanStore } from '../../src/database/remote-scan-store.ts'
import type { Content } from '../../src/domain/content/content.ts'
import { EngineBusy, EngineDown } from '../../src/domain/ports/engines.ts'
import type { Notifications } from '../../src/domain/ports/notifications.ts'
import type { RemoteScanStore } from '../../src/domain/ports/remote-scan-store.ts'
import { makeRemoteScanClient } from '../../src/domain/remote-scans/remote-scan-client.ts'
import { makeRunRemoteScan } from '../../src/domain/remote-scans/run-remote-scan.ts'
import { listQueues } from '../../src/domain/scans/jobs.ts'
import type { FinalResult } from '../../src/domain/scans/scan.ts'
import type { Scanner } from '../../src/domain/scans/scanner.ts'
import { makeResultWaiters } from '../../src/domain/scans/scanning.ts'
import { openRemoteScanWorker } from '../../src/workers/remote-scan-worker.ts'
import { silentLog } from '../support/silent-log.ts'
import { openTestDatabase } from '../support/test-database.ts'
import { waitFor } from '../support/wait-for.ts'

const toClean = (content: Pick<Content, 'bytes' | 'sha256'>): FinalResult => ({
  ...{ status: 'clean', signals: [], contentLength: content.bytes, contentType: 'text/plain' },
  metadata: { hash_sha256: content.sha256 },
})
const asked = { kind: 'malware' as const, contentName: 'a.txt', flagsSexy: true, isTest: false }
const leaseMs = 300

describe('a scan that another node is asked for', () => {
  let database: Awaited<ReturnType<typeof openTestDatabase>>
  const dir = join(mkdtempSync(join(tmpdir(), 'assay-remote-scans-')), 'jobs')
  const contents = makeDiskJobContents({ dir, master: openMasterKey(Buffer.alloc(32, 1), '/nowhere') })
  const listFiles = () => readdirSync(dir).filter((name) => name !== 'store-id')
  const closers: (() => Promise<void>)[] = []
  before(async () => {
    database = await openTestDatabase()
  })
  afterEach(async () => {
    for (const close of closers.splice(0).reverse()) await close()
    await database.pool.query('truncate remote_scans')
  })
  after(async () => {
    await database.drop()
    rmSync(join(dir, '..'), { recursive: true, force: true })
  })

  const openStore = () =>
    makeRemoteScanStore({ pool: database.pool, queues: listQueues(['malware'], contents.storeIds) })
  const countRemoteScans = async () => (await database.pool.query('select from remote_scans')).rowCount

  function listen(): Notifications {
    const notifications = openNotifications({ ...database, log: silentLog })
    closers.push(notifications.close)
    return notifications
  }

  /** Half of it is a node without engines. */
  function openApi({ claimTimeoutMs = 5000, notifications = listen() } = {}) {
    const resultWaiters = makeResultWaiters()
    notifications.on('completed', (ids) => ids.forEach(resultWaiters.notify))
    const failures: unknown[] = []
    const reportFailure = (error: unknown) => void failures.push(error)
    const kinds = ['malware' as const]
    return makeRemoteScanClient({
      remoteScans: openStore(),
      contents,
      kinds,
      resultWaiters,
      notifications,
      reportFailure,
      claimTimeoutMs,
    })
  }

  /** The other half is one with these. `dies`: it stops saying that it is alive, and can end nothing. */
  function openWorker(scanner: Partial<Scanner>, change: Partial<RemoteScanStore> = {}, notifications = listen()) {
    const remoteScans = { ...openStore(), ...change }
    const unused = () => Promise.reject(new Error('not asked for'))
    const run = makeRunRemoteScan({
      ...{ remoteScans, contents, scanner: { scanContent: unused, scanUrl: unused, ...scanner } },
      reportFailure: () => {},
      onCompleted: (id) => notifications.send('completed', id),
    })
    const worker = openRemoteScanWorker({ remoteScans, run, notifications, concurrency: 4, log: silentLog, leaseMs })
    closers.push(() => worker.close(1000))
    return worker
  }
  const dead = { extend: async () => [], complete: async () => false, release: async () => {} }

  async function write(bytes: number) {
    const writer = contents.newWriter()
    await writer.write(Buffer.alloc(bytes, 'text '))
    return writer.finish()
  }

  for (const bytes of [0, 5, 200_000]) {
    test(`of ${bytes} bytes is done on the very content, and leaves nothing`, async () => {
      openWorker({
        async scanContent(content, given) {
          const chunks: Buffer[] = []
          for await (const chunk of content.read()) chunks.push(Buffer.from(chunk))
          assert.equal(hash('sha256', Buffer.concat(chunks)), content.sha256)
          assert.deepEqual(given, asked)
          return toClean(content)
        },
      })
      const content = await write(bytes)
      assert.deepEqual(await openApi().scanContent(content, asked), toClean(content))
      await waitFor(() => listFiles().length === 0)
      assert.equal(await countRemoteScans(), 0)
    })
  }

  test('is done soon also where nobody can be woken', async () => {
    const deaf = { send: () => {}, on: () => {}, isListening: () => false }
    openWorker({ scanContent: async (content) => toClean(content) }, {}, deaf)
    const asking = openApi({ notifications: deaf })
    const times: number[] = []
    for (let i = 0; i < 5; i++) {
      const content = await write(5)
      const start = performance.now()
      await asking.scanContent(content, asked)
      times.push(performance.now() - start)
    }
    assert.ok(Math.min(...times) < 400, String(times))
  })

  test('and that nobody waits for is swept with its file', async () => {
    const content = await write(200_000)
    const source = await content.persist()
    await content.release()
    const remoteScans = openStore()
    const known = { bytes: content.bytes, sha1: content.sha1, sha256: content.sha256 }
    const lost = { ...asked, accountId: null, known }
    await remoteScans.add({ id: randomUUID(), queue: 'malware here', source, options: lost, ttlMs: -1 })
    assert.equal(listFiles().length, 1)
    assert.equal(await sweepRemoteScans({ remoteScans, jobContents: contents }), 1)
    assert.deepEqual([listFiles(), await countRemoteScans()], [[], 0])
  })

  test('of an address is done under the account that asked', async () => {
    openWorker({
      async scanUrl(url, { accountId, mode, kind }) {
        assert.deepEqual([url, accountId, mode, kind], ['https://a.test/', 'the account', 'sync', 'malware'])
        return toClean({ bytes: 1, sha256: 'ab' })
      },
    })
    const wanted = { ...asked, accountId: 'the account', mode: 'sync' as const, signal: new AbortController().signal }
    assert.equal((await openApi().scanUrl('https://a.test/', wanted)).status, 'clean')
  })

  for (const [about, thrown, expected] of [
    ['busy', new EngineBusy('full'), EngineBusy],
    ['down', new EngineDown('away'), EngineDown],
    ['broken', new Error('a mistake of ours'), EngineDown],
  ] as const) {
    test(`whose engine is ${about} ends as it would here`, async () => {
      openWorker({
        async scanContent() {
          throw thrown
        },
      })
      await assert.rejects(openApi().scanContent(await write(5), asked), expected)
      assert.equal(await countRemoteScans(), 0)
    })
  }

  test('whose answer is about other content is an error and no verdict', async () => {
    openWorker({ scanContent: async () => toClean({ bytes: 5, sha256: 'another' }) })
    await assert.rejects(openApi().scanContent(await write(5), asked), /about other content/)
  })

  test('whose content was put into another row is an error and no verdict', async () => {
    const asking = openApi()
    const [harmless, harmful] = [await write(5), await write(6)]
    const answers = Promise.allSettled([asking.scanContent(harmless, asked), asking.scanContent(harmful, asked)])
    while ((await countRemoteScans()) !== 2) await new Promise(setImmediate)
    await database.pool.query(
      `update remote_scans set sealed = other.sealed from remote_scans as other where other.id <> remote_scans.id`,
    )
    openWorker({ scanContent: async (content) => toClean(content) })
    for (const { status } of await answers) assert.equal(status, 'rejected')
  })

  test('is cancelled when its caller leaves: no row, no content, and the worker lets go', async () => {
    const begun = Promise.withResolvers<AbortSignal>()
    openWorker({
      scanUrl(_url, { signal }) {
        begun.resolve(signal)
        return new Promise((_, reject) => signal.addEventListener('abort', () => reject(signal.reason)))
      },
    })
    const asking = openApi()
    const leaving = new AbortController()
    const wanted = { ...asked, accountId: 'x', mode: 'sync' as const, signal: leaving.signal }
    const answer = asking.scanUrl('https://a.test/', wanted)
    const signal = await begun.promise
    assert.equal(asking.countWaiting(), 1)
    leaving.abort(new Error('The client has left'))
    await assert.rejects(answer, /The client has left/)
    assert.equal(asking.countWaiting(), 0)
    assert.equal(await countRemoteScans(), 0)
    await waitFor(() => signal.aborted)
  })

  test('is cancelled before anybody has taken it, with its file', async () => {
    const leaving = new AbortController()
    const content = await write(200_000)
    const answer = openApi().scanContent(content, { ...asked, abortWhenClientLeaves: () => leaving.signal })
    while ((await countRemoteScans()) !== 1) await new Promise(setImmediate)
    assert.equal(listFiles().length, 1)
    leaving.abort(new Error('The client has left'))
    await assert.rejects(answer, /The client has left/)
    assert.equal(await countRemoteScans(), 0)
    await waitFor(() => listFiles().length === 0)
  })

  test('whose worker dies is done by another', async () => {
    const taken = Promise.withResolvers<void>()
    const first = openWorker(
      {
        scanContent() {
          taken.resolve()
          return new Promise(() => {})
        },
      },
      dead,
    )
    const answer = openApi().scanContent(await write(5), asked)
    await taken.promise
    await first.close(0)
    openWorker({ scanContent: async (content) => toClean(content) })
    assert.equal((await answer).status, 'clean')
  })

  test('that workers die of is given up after three', async () => {
    let deaths = 0
    openWorker(
      {
        async scanContent(content) {
          deaths++
          return toClean(content)
        },
      },
      dead,
    )
    await assert.rejects(openApi().scanContent(await write(5), asked), (error: Error) => {
      assert.ok(error instanceof EngineDown && !(error instanceof EngineBusy))
      return true
    })
    assert.equal(deaths, 3)
    assert.equal(await countRemoteScans(), 0)
  })

  test('that nobody takes is refused soon as too much, and one whose worker died and left nobody as a failure', async () => {
    const asking = openApi({ claimTimeoutMs: 200 })
    await assert.rejects(asking.scanContent(await write(5), asked), EngineBusy)
    const isDown = (error: Error) => error instanceof EngineDown && !(error instanceof EngineBusy)
    const patient = openApi({ claimTimeoutMs: 2000 })
    const refused = assert.rejects(patient.scanContent(await write(5), asked), isDown)
    while ((await countRemoteScans()) !== 1) await new Promise(setImmediate)
    assert.equal((await openStore().claim(1, 100)).length, 1)
    await refused
    assert.equal(await countRemoteScans(), 0)
  })

  test('is gone when the database lost it, and no verdict', async () => {
    const refused = assert.rejects(openApi().scanContent(await write(5), asked), EngineDown)
    while ((await countRemoteScans()) !== 1) await new Promise(setImmediate)
    await database.pool.query('truncate remote_scans')
    await refused
  })

  test('of a kind that is switched off is refused at once', async () => {
    await assert.rejects(openApi().scanContent(await write(5), { ...asked, kind: 'nsfw_image' }), EngineDown)
  })

  test('that runs when its worker stops is finished; an address is given back for another', async () => {
    const begun = [Promise.withResolvers<void>(), Promise.withResolvers<void>()] as const
    const finish = Promise.withResolvers<void>()
    const first = openWorker({
      async scanContent(content) {
        begun[0].resolve()
        await finish.promise
        return toClean(content)
      },
      scanUrl(_url, { signal }) {
        begun[1].resolve()
        return new Promise((_, reject) => signal.addEventListener('abort', () => reject(signal.reason)))
      },
    })
    const asking = openApi()
    const wanted = { ...asked, accountId: 'x', mode: 'sync' as const, signal: new AbortController().signal }
    const answers = [asking.scanContent(await write(5), asked), asking.scanUrl('https://a.test/', wanted)]
    await Promise.all(begun.map(({ promise }) => promise))
    const closed = first.close(5000)
    openWorker({ scanUrl: async () => toClean({ bytes: 1, sha256: 'ab' }) })
    finish.resolve()
    await closed
    for (const { status } of await Promise.all(answers)) assert.equal(status, 'clean')
  })
})

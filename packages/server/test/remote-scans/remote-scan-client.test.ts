import assert from 'node:assert/strict'
import { hash, randomUUID } from 'node:crypto'
import { mkdtempSync, readdirSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, afterEach, before, describe, test } from 'node:test'
import { makeDiskJobContents } from '../../src/blobs/job-contents.ts'
import { openMasterKey } from '../../src/blobs/master-key.ts'
import { sweepRemoteScans } from '../../src/compose/background.ts'
import { openNotifications } from '../../src/database/notifications.ts'
import { makeRemoteScanStore } from '../../src/database/remote-scan-store.ts'
import type { Content } from '../../src/domain/content/content.ts'
import { EngineBusy, EngineDown } from '../../src/domain/ports/engines.ts'
import type { Notifications, RemoteScanStore } from '../../src/domain/ports/job-store.ts'
import { listQueues } from '../../src/domain/scans/jobs.ts'
import { makeRemoteScanClient, makeRunRemoteScan } from '../../src/domain/scans/remote-scan.ts'
import type { FinalResult } from '../../src/domain/scans/scan.ts'
import type { Scanner } from '../../src/domain/scans/scanner.ts'
import { makeResultWaiters } from '../../src/domain/scans/scanning.ts'
import { openRemoteScanWorker } from '../../src/workers/scan-workers.ts'
import { silentLog } from '../support/silent-log.ts'
import { openTestDatabase } from '../support/test-database.ts'
import { waitFor } from '../support/wait-for.ts'

const toClean = (content: Pick<Content, 'bytes' | 'sha256'>): FinalResult => ({
  status: 'clean',
  signals: [],
  contentLength: content.bytes,
  contentType: 'text/plain',
  metadata: { hash_sha256: content.sha256 },
})
const options = {
  kind: 'malware' as const,
  contentName: 'a.txt',
  flagsSexy: true,
  accountId: 'the account',
  isTest: false,
}
const leaseMs = 300
const isDown = (error: unknown) => error instanceof EngineDown && !(error instanceof EngineBusy)

describe('a remote scan', () => {
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
    makeRemoteScanStore({ pool: database.pool, listQueues: () => listQueues(['malware'], contents.storeIds) })
  const countRemoteScans = async () => (await database.pool.query('select from remote_scans')).rowCount

  function listen(): Notifications {
    const notifications = openNotifications({ ...database.direct, log: silentLog })
    closers.push(notifications.close)
    return notifications
  }

  /** A node without engines. */
  function openApi({ claimTimeoutMs = 5000, notifications = listen(), resultWaiters = makeResultWaiters() } = {}) {
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

  /** A node with engines. With `dead` as `change` it neither extends its leases nor completes a scan. */
  function openWorker(scanner: Partial<Scanner>, change: Partial<RemoteScanStore> = {}, notifications = listen()) {
    const remoteScans = { ...openStore(), ...change }
    const unused = () => Promise.reject(new Error('Unexpected call'))
    const run = makeRunRemoteScan({
      remoteScans,
      contents,
      scanner: { scanContent: unused, scanUrl: unused, ...scanner },
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
    test(`of ${bytes} bytes scans exactly the content, and leaves nothing behind`, async () => {
      openWorker({
        async scanContent(content, given) {
          const chunks: Buffer[] = []
          for await (const chunk of content.read()) chunks.push(Buffer.from(chunk))
          assert.equal(hash('sha256', Buffer.concat(chunks)), content.sha256)
          assert.deepEqual(given, options)
          return toClean(content)
        },
      })
      const content = await write(bytes)
      assert.deepEqual(await openApi().scanContent(content, options), toClean(content))
      await waitFor(() => listFiles().length === 0)
      assert.equal(await countRemoteScans(), 0)
    })
  }

  test('polls often when no notification can arrive', async () => {
    const silent = { send: () => {}, on: () => {}, isListening: () => false }
    const waits: number[] = []
    const waiters = makeResultWaiters()
    const resultWaiters: typeof waiters = {
      ...waiters,
      wait(id, ms, signal) {
        waits.push(ms)
        return waiters.wait(id, ms, signal)
      },
    }
    openWorker({ scanContent: async (content) => toClean(content) }, {}, silent)
    const result = await openApi({ notifications: silent, resultWaiters }).scanContent(await write(5), options)
    assert.equal(result.status, 'clean')
    assert.ok(Math.max(...waits) <= 50, String(waits))
  })

  test('that nobody waits for is swept with its file', async () => {
    const content = await write(200_000)
    const source = await content.persist({ accountId: null, scanId: 'a scan' })
    await content.release()
    const remoteScans = openStore()
    const identity = { bytes: content.bytes, sha1: content.sha1, sha256: content.sha256 }
    const lost = { ...options, accountId: null, identity }
    await remoteScans.add({ id: randomUUID(), queue: 'malware here', source, options: lost, ttlMs: -1 })
    assert.equal(listFiles().length, 1)
    assert.equal(await sweepRemoteScans({ remoteScans, jobContents: contents }), 1)
    assert.deepEqual([listFiles(), await countRemoteScans()], [[], 0])
  })

  test('of a URL runs under the account of the caller', async () => {
    openWorker({
      async scanUrl(url, { accountId, mode, kind }) {
        assert.deepEqual([url, accountId, mode, kind], ['https://a.test/', 'the account', 'sync', 'malware'])
        return toClean({ bytes: 1, sha256: 'ab' })
      },
    })
    const wanted = { ...options, accountId: 'the account', mode: 'sync' as const, signal: new AbortController().signal }
    assert.equal((await openApi().scanUrl('https://a.test/', wanted)).status, 'clean')
  })

  for (const [about, thrown, expected] of [
    ['busy', new EngineBusy('full'), EngineBusy],
    ['down', new EngineDown('away'), EngineDown],
    ['broken', new Error('a mistake of ours'), EngineDown],
  ] as const) {
    test(`whose engine is ${about} fails as it would on this node`, async () => {
      openWorker({ scanContent: () => Promise.reject(thrown) })
      await assert.rejects(openApi().scanContent(await write(5), options), expected)
      assert.equal(await countRemoteScans(), 0)
    })
  }

  test('with a result about other content is an error, not a verdict', async () => {
    openWorker({ scanContent: async () => toClean({ bytes: 5, sha256: 'another' }) })
    await assert.rejects(openApi().scanContent(await write(5), options), /about other content/)
  })

  test('whose content was moved to another row is an error, not a verdict', async () => {
    const client = openApi()
    const [harmless, harmful] = [await write(5), await write(6)]
    const answers = Promise.allSettled([client.scanContent(harmless, options), client.scanContent(harmful, options)])
    while ((await countRemoteScans()) !== 2) await new Promise(setImmediate)
    await database.pool.query(
      `update remote_scans set sealed = other.sealed from remote_scans as other where other.id <> remote_scans.id`,
    )
    openWorker({ scanContent: async (content) => toClean(content) })
    for (const { status } of await answers) assert.equal(status, 'rejected')
  })

  test('is cancelled when its caller leaves: no row remains, and the worker stops', async () => {
    const begun = Promise.withResolvers<AbortSignal>()
    openWorker({
      scanUrl(_url, { signal }) {
        begun.resolve(signal)
        return new Promise((_, reject) => signal.addEventListener('abort', () => reject(signal.reason)))
      },
    })
    const client = openApi()
    const leaving = new AbortController()
    const wanted = { ...options, accountId: 'x', mode: 'sync' as const, signal: leaving.signal }
    const answer = client.scanUrl('https://a.test/', wanted)
    const signal = await begun.promise
    assert.equal(client.countWaiting(), 1)
    leaving.abort(new Error('The client has left'))
    await assert.rejects(answer, /The client has left/)
    assert.equal(client.countWaiting(), 0)
    assert.equal(await countRemoteScans(), 0)
    await waitFor(() => signal.aborted)
  })

  test('is cancelled before a worker claims it, with its file', async () => {
    const leaving = new AbortController()
    const content = await write(200_000)
    const answer = openApi().scanContent(content, { ...options, abortWhenClientLeaves: () => leaving.signal })
    while ((await countRemoteScans()) !== 1) await new Promise(setImmediate)
    assert.equal(listFiles().length, 1)
    leaving.abort(new Error('The client has left'))
    await assert.rejects(answer, /The client has left/)
    assert.equal(await countRemoteScans(), 0)
    await waitFor(() => listFiles().length === 0)
  })

  test('whose worker dies is completed by another', async () => {
    const taken = Promise.withResolvers<void>()
    const scanContent = () => {
      taken.resolve()
      return new Promise<never>(() => {})
    }
    const first = openWorker({ scanContent }, dead)
    const answer = openApi().scanContent(await write(5), options)
    await taken.promise
    await first.close(0)
    openWorker({ scanContent: async (content) => toClean(content) })
    assert.equal((await answer).status, 'clean')
  })

  test('is given up after three workers died of it', async () => {
    let deaths = 0
    const scanContent = async (content: Content) => {
      deaths++
      return toClean(content)
    }
    openWorker({ scanContent }, dead)
    await assert.rejects(openApi().scanContent(await write(5), options), isDown)
    assert.equal(deaths, 3)
    assert.equal(await countRemoteScans(), 0)
  })

  test('that no worker claims is an overload, and one whose only worker died is a failure', async () => {
    const client = openApi({ claimTimeoutMs: 200 })
    await assert.rejects(client.scanContent(await write(5), options), EngineBusy)
    const patient = openApi({ claimTimeoutMs: 2000 })
    const refused = assert.rejects(patient.scanContent(await write(5), options), isDown)
    while ((await countRemoteScans()) !== 1) await new Promise(setImmediate)
    assert.equal((await openStore().claim(1, 100)).length, 1)
    await refused
    assert.equal(await countRemoteScans(), 0)
  })

  test('that the database lost is a failure, not a verdict', async () => {
    const refused = assert.rejects(openApi().scanContent(await write(5), options), EngineDown)
    while ((await countRemoteScans()) !== 1) await new Promise(setImmediate)
    await database.pool.query('truncate remote_scans')
    await refused
  })

  test('of a kind that is switched off is refused', async () => {
    await assert.rejects(openApi().scanContent(await write(5), { ...options, kind: 'nsfw_image' }), EngineDown)
  })

  test('of content is finished when its worker stops; one of a URL is released for another worker', async () => {
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
    const client = openApi()
    const wanted = { ...options, accountId: 'x', mode: 'sync' as const, signal: new AbortController().signal }
    const answers = [client.scanContent(await write(5), options), client.scanUrl('https://a.test/', wanted)]
    await Promise.all(begun.map(({ promise }) => promise))
    const closed = first.close(5000)
    openWorker({ scanUrl: async () => toClean({ bytes: 1, sha256: 'ab' }) })
    finish.resolve()
    await closed
    for (const { status } of await Promise.all(answers)) assert.equal(status, 'clean')
  })
})

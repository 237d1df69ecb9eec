import assert from 'node:assert/strict'
import { mkdtempSync, readdirSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, afterEach, before, describe, test } from 'node:test'
import { setTimeout as pause } from 'node:timers/promises'
import { waitUntil } from '../../../../acceptance/support/wait-until.ts'
import { makeDiskJobContents } from '../../src/blobs/job-contents.ts'
import { openMasterKey } from '../../src/blobs/master-key.ts'
import { makeJobStore } from '../../src/database/job-store.ts'
import { makeDescriber } from '../../src/domain/content/media-type.ts'
import { StorageUnavailable } from '../../src/domain/ports/content-store.ts'
import {
  EngineBusy,
  EngineDown,
  EngineStarved,
  type ScanEngine,
  type Unpacker,
} from '../../src/domain/ports/engines.ts'
import type { Problem } from '../../src/domain/problem.ts'
import { makeInspection } from '../../src/domain/scans/inspection.ts'
import { listQueues, makeRunJob } from '../../src/domain/scans/jobs.ts'
import type { FinalResult } from '../../src/domain/scans/scan.ts'
import { noDegradation, type Scanner } from '../../src/domain/scans/scanner.ts'
import { makeResultWaiters } from '../../src/domain/scans/scanning.ts'
import { makeSubmitting } from '../../src/domain/scans/submitting.ts'
import { makeWorkClock } from '../../src/domain/scans/work-clock.ts'
import { makeSemaphore } from '../../src/domain/semaphore.ts'
import { openUnpacker } from '../../src/engines/unpack/open-unpacker.ts'
import { systemClock } from '../../src/runtime/clock.ts'
import { makeLogger } from '../../src/runtime/logger.ts'
import { readProcessorMs } from '../../src/runtime/process.ts'
import { openScanWorker } from '../../src/workers/scan-workers.ts'
import { openTestJobs, type TestJobs } from '../database/test-jobs.ts'
import { newRar5 } from '../engines/unpack-archives.ts'
import { newContents, newEngine, newUnpacker, nothing } from '../scans/scan-support.ts'
import { waitFor } from '../support/wait-for.ts'

const log = makeLogger({ level: 'silent', region: 'test' })
const clean: FinalResult = {
  status: 'clean',
  signals: [],
  metadata: { seen: 'yes' },
  contentLength: 5,
  contentType: 'text/plain',
}

describe('a background scan', () => {
  let stores: TestJobs
  const dir = join(mkdtempSync(join(tmpdir(), 'assay-background-')), 'jobs')
  const contents = makeDiskJobContents({ dir, master: openMasterKey(Buffer.alloc(32, 1), '/nowhere') })
  const listFiles = () => readdirSync(dir).filter((name) => name !== 'store-id')
  const workers: { close(ms: number): Promise<void> }[] = []
  before(async () => {
    stores = await openTestJobs()
  })
  afterEach(async () => {
    for (const worker of workers.splice(0)) await worker.close(1000)
    await stores.clear()
  })
  after(async () => {
    await stores.close()
    rmSync(join(dir, '..'), { recursive: true, force: true })
  })

  /** A worker whose engine is this; it says what it saw and how scans ended. */
  function openWorker(scanner: Partial<Scanner>, { pausesMs = [0, 0], concurrency = 4 } = {}) {
    const completed: string[] = []
    const resultWaiters = makeResultWaiters()
    const jobs = makeJobStore({ ...stores, listQueues: () => listQueues(['malware'], contents.storeIds) })
    const { run, giveUp, countCompleting } = makeRunJob({
      jobs,
      contents,
      clock: systemClock,
      pausesMs,
      scanner: { scanContent: async () => clean, scanUrl: async () => clean, ...scanner },
      observeVerdict: () => {},
      reportFailure: () => {},
      onCompleted(scanId) {
        completed.push(scanId)
        resultWaiters.notify(scanId)
      },
    })
    const worker = openScanWorker({ jobs, run, countCompleting, concurrency, log })
    workers.push(worker)
    const submitting = makeSubmitting({
      gate: stores.gate,
      describe: makeDescriber({ entries: 0 }),
      contents,
      clock: systemClock,
      region: 'test',
      kinds: ['malware'],
      degradation: noDegradation,
      testWebhooks: { maxPerDay: 0, take: async () => undefined },
      onQueued: worker.poke,
    })
    return { ...submitting, worker, resultWaiters, completed, giveUp }
  }

  async function newCaller() {
    const { digest, id } = await stores.register()
    const answer = await stores.gate.admit({ keyDigest: digest, countsRequest: true })
    assert.ok(answer.outcome === 'admitted')
    return { caller: answer.caller, accountId: id }
  }

  async function write(bytes: Buffer) {
    const writer = contents.newWriter()
    await writer.write(bytes)
    return writer.finish()
  }
  const order = {
    kind: 'malware' as const,
    address: '192.0.2.1',
    contentName: 'a.txt',
    callbackUrl: null,
    idempotency: undefined,
    countsRequest: false,
  }

  /** Waits until the scan is completed. */
  async function readResult(accountId: string, scanId: string) {
    let scan: Awaited<ReturnType<typeof stores.scans.findScan>>
    await waitUntil('the result', async () => {
      scan = await stores.scans.findScan(accountId, 'malware', scanId)
      return scan !== undefined && scan.status !== 'pending'
    })
    assert.ok(scan !== undefined)
    return scan
  }

  for (const bytes of [5, 200_000]) {
    test(`of ${bytes} bytes whose content was exchanged with that of another account gets no verdict`, async () => {
      // The worker stops at once, so no job runs before the contents are exchanged.
      const { submitFile, worker } = openWorker({})
      worker.stop()
      const submitted = await Promise.all(
        ['a', 'b'].map(async (letter) => {
          const { caller, accountId } = await newCaller()
          const { scanId } = await submitFile(caller, await write(Buffer.alloc(bytes, letter)), order)
          return { accountId, scanId }
        }),
      )
      await stores.pool.query(
        `update jobs set sealed = other.sealed, storage_key = other.storage_key from jobs as other
         where other.scan_id <> jobs.scan_id`,
      )
      const seen: string[] = []
      openWorker({
        async scanContent(content) {
          seen.push(content.sha256)
          return clean
        },
      })
      for (const { accountId, scanId } of submitted) {
        assert.deepEqual((await readResult(accountId, scanId)).signals, ['Error:EngineFailed'])
      }
      assert.deepEqual(seen, [])
    })

    test(`of ${bytes} bytes sees what was submitted, and leaves nothing of it`, async () => {
      let seen: Buffer[] = []
      let contentType: string | undefined
      const { submitFile } = openWorker({
        async scanContent(content) {
          seen = []
          contentType = content.description?.contentType
          for await (const chunk of content.read()) seen.push(Buffer.from(chunk))
          return clean
        },
      })
      const { caller, accountId } = await newCaller()
      const clear = Buffer.alloc(bytes, 'text ')
      const { scanId, refused } = await submitFile(caller, await write(Buffer.from(clear)), order)
      assert.equal(refused, undefined)
      const { status, metadata, completedAt } = await readResult(accountId, scanId)
      assert.deepEqual([status, metadata], ['clean', clean.metadata])
      assert.ok(completedAt)
      assert.ok(Buffer.concat(seen).equals(clear))
      assert.equal(contentType, 'text/plain; charset=us-ascii', 'the type is not detected a second time')
      await waitUntil('the content to be removed', () => listFiles().length === 0)
      assert.equal(await stores.count('jobs', accountId), 0)
    })
  }

  test('that is refused for want of credit is no job, and its content is gone', async () => {
    const { submitFile } = openWorker({})
    const { digest, id } = await stores.register({ credits: 1 })
    const answer = await stores.gate.admit({ keyDigest: digest, countsRequest: true })
    assert.ok(answer.outcome === 'admitted')
    assert.equal((await submitFile(answer.caller, await write(Buffer.alloc(100_000)), order)).refused, undefined)
    const { refused } = await submitFile(answer.caller, await write(Buffer.alloc(100_000)), order)
    assert.equal(refused?.refusal.kind, 'out-of-credit')
    await waitUntil('the content to be removed', () => listFiles().length === 0)
    assert.equal(await stores.count('scans', id), 1)
  })

  test('whose engine fails is tried three times, then ends in an error and gives its credit back', async () => {
    let tries = 0
    const { submitUrl } = openWorker({
      async scanUrl() {
        tries++
        throw new EngineDown('away')
      },
    })
    const { caller, accountId } = await newCaller()
    const before = await stores.getBalance(accountId)
    const { scanId } = await submitUrl(caller, 'https://origin.test/a', order)
    const { status, signals } = await readResult(accountId, scanId)
    assert.deepEqual([status, signals], ['error', ['Error:EngineFailed']])
    assert.equal(tries, 3)
    const balance = await stores.getBalance(accountId)
    assert.equal(balance?.remaining, before?.remaining)
    assert.equal(balance?.ledger, balance?.remaining)
  })

  /** Scans for malware as the service does, with this engine and this unpacker. */
  function newInspectingScanner(engine: ScanEngine, unpacker: Unpacker): Pick<Scanner, 'scanContent'> {
    const inspection = makeInspection({
      listEngines: () => [engine],
      unpacker,
      contents: newContents().contents,
      // Callers wait so shortly that every job which waited like a caller would be released.
      semaphore: makeSemaphore({ count: 2, reserved: 1, maxWaitMs: 1 }),
      clock: makeWorkClock({ readProcessorMs, now: () => performance.now() }),
    })
    return {
      async scanContent(content, { job }) {
        const { doubts } = await inspection.inspect(content, { job })
        return doubts.length === 0
          ? clean
          : { ...clean, status: 'error', signals: doubts.map((name) => `Error:${name}`) }
      },
    }
  }

  test('whose unpacking process is stopped each time is our fault: it ends in an error and gives its credit back', async () => {
    const unpacker = openUnpacker({ log, stallMs: 1500 })
    const stopped = new Set<number>()
    const stopAll = setInterval(() => {
      for (const pid of unpacker.processIds()) {
        if (!stopped.has(pid)) process.kill(pid, 'SIGSTOP')
        stopped.add(pid)
      }
    }, 5)
    try {
      const { submitFile } = openWorker(newInspectingScanner(newEngine(), unpacker))
      const { caller, accountId } = await newCaller()
      const before = await stores.getBalance(accountId)
      const { scanId } = await submitFile(caller, await write(newRar5()), order)
      assert.deepEqual((await readResult(accountId, scanId)).signals, ['Error:EngineFailed'])
      assert.equal(stopped.size, 6)
      const balance = await stores.getBalance(accountId)
      assert.deepEqual([balance?.remaining, balance?.ledger], [before?.remaining, before?.remaining])
      clearInterval(stopAll)
      const again = await submitFile(caller, await write(newRar5()), order)
      assert.equal((await readResult(accountId, again.scanId)).status, 'clean')
    } finally {
      clearInterval(stopAll)
      await unpacker.close()
    }
  })

  test('that waits for an engine keeps its place among the jobs of its account, whatever its size', async () => {
    const engine = newEngine({
      async scan() {
        await pause(10)
        return nothing
      },
    })
    const concurrency = 6
    const scanner = newInspectingScanner(engine, newUnpacker())
    const { submitFile, completed, worker } = openWorker(scanner, { pausesMs: [60_000], concurrency })
    worker.stop()
    const { caller } = await newCaller()
    const submitted: string[] = []
    for (let i = 0; i < 30; i++) {
      // Content over 64 KB is not in memory, and waits for the semaphore.
      const content = await write(Buffer.alloc(i % 3 === 0 ? 100 : 70_000, `job ${i} `))
      submitted.push((await submitFile(caller, content, order)).scanId)
    }
    const { completed: completedLater } = openWorker(scanner, { pausesMs: [60_000], concurrency })
    await waitFor(() => completedLater.length === submitted.length)
    assert.deepEqual(completed, [])
    for (const [place, id] of completedLater.entries()) {
      const moved = Math.abs(place - submitted.indexOf(id))
      assert.ok(moved <= concurrency, `job ${submitted.indexOf(id)} ended as number ${place}`)
    }
  })

  for (const [what, passing] of Object.entries({
    'a full engine': new EngineBusy('full'),
    'a storage that is away': new StorageUnavailable('away'),
  })) {
    test(`that meets ${what} waits as often as it takes`, async () => {
      let tries = 0
      const { submitUrl } = openWorker({
        async scanUrl() {
          if (++tries < 6) throw passing
          return clean
        },
      })
      const { caller, accountId } = await newCaller()
      const { scanId } = await submitUrl(caller, 'https://origin.test/a', order)
      assert.equal((await readResult(accountId, scanId)).status, 'clean')
      assert.equal(tries, 6)
    })
  }

  test('that starves each time ends in an error like one whose engine fails', async () => {
    let tries = 0
    const { submitUrl } = openWorker({
      async scanUrl() {
        tries++
        throw new EngineStarved('too little time')
      },
    })
    const { caller, accountId } = await newCaller()
    const before = await stores.getBalance(accountId)
    const { scanId } = await submitUrl(caller, 'https://origin.test/a', order)
    assert.deepEqual((await readResult(accountId, scanId)).signals, ['Error:EngineFailed'])
    assert.equal(tries, 3)
    assert.equal((await stores.getBalance(accountId))?.remaining, before?.remaining)
  })

  test('is completed, and those who wait are told, when its content cannot be removed', async (t) => {
    t.mock.method(contents, 'remove', () => Promise.reject(new StorageUnavailable('away')))
    const { submitFile, completed } = openWorker({})
    const { caller, accountId } = await newCaller()
    const { scanId } = await submitFile(caller, await write(Buffer.from('hello')), order)
    assert.equal((await readResult(accountId, scanId)).status, 'clean')
    await waitFor(() => completed.includes(scanId))
  })

  test('whose worker died three times is not scanned a fourth time', async () => {
    const { caller, accountId } = await newCaller()
    const scanId = await stores.submit(caller.keyDigest)
    for (let i = 0; i < 3; i++) {
      assert.equal((await stores.jobs.claim(5, 15_000)).length, 1)
      await stores.endLeases()
    }
    let tries = 0
    openWorker({
      async scanUrl() {
        tries++
        return clean
      },
    })
    assert.deepEqual((await readResult(accountId, scanId)).signals, ['Error:EngineFailed'])
    assert.equal(tries, 0)
  })

  test('that somebody else has by now is not completed, and its content stays for them', async () => {
    const { submitFile, worker, completed } = openWorker({
      async scanContent() {
        // As if this worker had been away for longer than its lease.
        await stores.endLeases()
        await makeJobStore({ ...stores, listQueues: () => listQueues(['malware'], contents.storeIds) }).claim(5, 60_000)
        return clean
      },
    })
    const { caller, accountId } = await newCaller()
    const { scanId } = await submitFile(caller, await write(Buffer.alloc(100_000)), order)
    await waitUntil('the job to run', async () => (await stores.jobs.countJobs()).running === 1)
    await worker.close(60_000)
    assert.equal((await stores.scans.findScan(accountId, 'malware', scanId))?.status, 'pending')
    assert.deepEqual(completed, [])
    assert.equal(listFiles().length, 1)
    for (const name of listFiles()) rmSync(join(dir, name))
  })

  test('that runs when the worker stops is finished, and no other is begun', async () => {
    const entered = Promise.withResolvers<void>()
    const release = Promise.withResolvers<void>()
    const { submitUrl, worker, completed } = openWorker({
      async scanUrl() {
        entered.resolve()
        await release.promise
        return clean
      },
    })
    const { caller, accountId } = await newCaller()
    const { scanId } = await submitUrl(caller, 'https://origin.test/a', order)
    await entered.promise
    const closed = worker.close(5000)
    const later = await submitUrl(caller, 'https://origin.test/b', order)
    release.resolve()
    await closed
    assert.deepEqual(completed, [scanId])
    assert.equal((await stores.scans.findScan(accountId, 'malware', later.scanId))?.status, 'pending')
  })

  test('whose content lies elsewhere, or whose engine is not here, is left to others', async () => {
    const { submitUrl } = openWorker({})
    const { caller, accountId } = await newCaller()
    const elsewhere = { at: 'storage' as const, key: 'x', sealedKey: Buffer.from('sealed') }
    const away = await stores.submit(caller.keyDigest, { queue: 'malware another-store', source: elsewhere })
    const picture = await stores.submit(caller.keyDigest, { queue: 'nsfw_image anywhere' })
    // When a later job is complete, the worker has passed over the two before it.
    await readResult(accountId, (await submitUrl(caller, 'https://origin.test/a', order)).scanId)
    const others = makeJobStore({ ...stores, listQueues: () => ['malware another-store', 'nsfw_image anywhere'] })
    assert.deepEqual((await others.claim(5, 15_000)).map(({ scan }) => scan.id).sort(), [away, picture].sort())
  })

  test('that nobody could do for a day ends in an error, and gives its credit back', async () => {
    const { giveUp } = openWorker({})
    const { caller, accountId } = await newCaller()
    const before = await stores.getBalance(accountId)
    const elsewhere = { at: 'storage' as const, key: 'x', sealedKey: Buffer.from('sealed') }
    const scanId = await stores.submit(caller.keyDigest, { queue: 'malware another-store', source: elsewhere })
    const dayMs = 86_400_000
    assert.deepEqual(await stores.jobs.claimAbandoned(dayMs, 10, 1000), [])
    await stores.pool.query(`update jobs set created_at = now() - interval '25 hours' where scan_id = $1`, [scanId])
    for (const job of await stores.jobs.claimAbandoned(dayMs, 10, 1000)) await giveUp(job)
    assert.deepEqual((await readResult(accountId, scanId)).signals, ['Error:EngineFailed'])
    assert.equal((await stores.getBalance(accountId))?.remaining, before?.remaining)
  })

  test('of a kind that is switched off is refused, uncharged', async () => {
    const { submitUrl } = openWorker({})
    const { caller, accountId } = await newCaller()
    const image = { ...order, kind: 'nsfw_image' as const }
    await assert.rejects(submitUrl(caller, 'https://origin.test/a', image), (error: Problem) => {
      assert.equal(error.refusal.kind, 'engine-unavailable')
      return true
    })
    assert.equal(await stores.count('scans', accountId), 0)
  })

  test('notifies requests that wait for it', { timeout: 30_000 }, async () => {
    const { submitUrl, resultWaiters } = openWorker({})
    const { caller } = await newCaller()
    const { scanId } = await submitUrl(caller, 'https://origin.test/a', order)
    await resultWaiters.wait(scanId, 600_000, new AbortController().signal)
  })
})

import assert from 'node:assert/strict'
import { mkdtempSync, readdirSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, afterEach, before, describe, test } from 'node:test'
import { makeJobContents } from '../../src/blobs/job-contents.ts'
import { openMasterKey } from '../../src/blobs/master-key.ts'
import { makeJobStore } from '../../src/database/job-store.ts'
import { makeDescriber } from '../../src/domain/content/describe.ts'
import { StorageAway } from '../../src/domain/ports/content-store.ts'
import { EngineBusy, EngineDown } from '../../src/domain/ports/scan-engine.ts'
import type { Problem } from '../../src/domain/problem.ts'
import { makeBell } from '../../src/domain/scans/bell.ts'
import { listLanes } from '../../src/domain/scans/lanes.ts'
import type { Outcome, Outcomes } from '../../src/domain/scans/outcome.ts'
import { makeRunJob } from '../../src/domain/scans/run-job.ts'
import { makeSubmitting } from '../../src/domain/scans/submitting.ts'
import { systemClock } from '../../src/runtime/clock.ts'
import { makeLogger } from '../../src/runtime/logger.ts'
import { openScanWorker } from '../../src/workers/scan-worker.ts'
import { openTestJobs, type TestJobs } from '../database/test-jobs.ts'
import { waitFor } from '../support/wait-for.ts'

const log = makeLogger({ level: 'silent', region: 'test' })
const clean: Outcome = {
  ...{ status: 'clean', signals: [], metadata: { seen: 'yes' }, contentLength: 5, contentType: 'text/plain' },
}

describe('a background scan', () => {
  let office: TestJobs
  const dir = join(mkdtempSync(join(tmpdir(), 'assay-background-')), 'jobs')
  const contents = makeJobContents({ dir, master: openMasterKey(Buffer.alloc(32, 1), '/nowhere') })
  const listFiles = () => readdirSync(dir).filter((name) => name !== 'store-id')
  const workers: { close(ms: number): Promise<void> }[] = []
  before(async () => {
    office = await openTestJobs()
  })
  afterEach(async () => {
    for (const worker of workers.splice(0)) await worker.close(1000)
    await office.clear()
  })
  after(async () => {
    await office.close()
    rmSync(join(dir, '..'), { recursive: true, force: true })
  })

  /** A worker whose engine is this; it says what it saw and how scans ended. */
  function openWorker(outcomes: Partial<Outcomes>) {
    const settled: string[] = []
    const bell = makeBell()
    const jobs = makeJobStore({ ...office, lanes: listLanes(['malware'], contents.places) })
    const { run, giveUp } = makeRunJob({
      ...{ jobs, contents, clock: systemClock, pausesMs: [0, 0] },
      outcomes: { ofContent: async () => clean, ofUrl: async () => clean, ...outcomes },
      observeVerdict: () => {},
      reportFailure: () => {},
      onSettled(scanId) {
        settled.push(scanId)
        bell.ring(scanId)
      },
    })
    const worker = openScanWorker({ jobs, run, concurrency: 4, log })
    workers.push(worker)
    const submitting = makeSubmitting({
      ...{ gate: office.gate, describe: makeDescriber({ entries: 0 }), contents, clock: systemClock, region: 'test' },
      kinds: ['malware'],
      onQueued: worker.poke,
    })
    return { ...submitting, worker, bell, settled, giveUp }
  }

  async function newCaller() {
    const { digest, id } = await office.register()
    const answer = await office.gate.ask({ keyDigest: digest, takesRequest: true })
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
    contentName: 'a.txt',
    callbackUrl: null,
    idempotency: undefined,
    takesRequest: false,
  }

  /** Until it is settled. */
  async function readResult(accountId: string, scanId: string) {
    for (;;) {
      const scan = await office.scans.findScan(accountId, 'malware', scanId)
      if (scan !== undefined && scan.status !== 'pending') return scan
      await new Promise((resolve) => setTimeout(resolve, 20))
    }
  }

  for (const bytes of [5, 200_000]) {
    test(`of ${bytes} bytes sees what was submitted, and leaves nothing of it`, async () => {
      let seen: Buffer[] = []
      const { submitFile } = openWorker({
        async ofContent(content) {
          seen = []
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
      await until(() => listFiles().length === 0)
      assert.equal(await office.count('jobs', accountId), 0)
    })
  }

  test('that is refused for want of credit is no job, and its content is gone', async () => {
    const { submitFile } = openWorker({})
    const { digest, id } = await office.register({ credits: 1 })
    const answer = await office.gate.ask({ keyDigest: digest, takesRequest: true })
    assert.ok(answer.outcome === 'admitted')
    assert.equal((await submitFile(answer.caller, await write(Buffer.alloc(100_000)), order)).refused, undefined)
    const { refused } = await submitFile(answer.caller, await write(Buffer.alloc(100_000)), order)
    assert.equal(refused?.refusal.kind, 'out-of-credit')
    await until(() => listFiles().length === 0)
    assert.equal(await office.count('scans', id), 1)
  })

  test('whose engine fails is tried three times, then ends in an error and gives its credit back', async () => {
    let tries = 0
    const { submitUrl } = openWorker({
      async ofUrl() {
        tries++
        throw new EngineDown('away')
      },
    })
    const { caller, accountId } = await newCaller()
    const before = await office.getBalance(accountId)
    const { scanId } = await submitUrl(caller, 'https://origin.test/a', order)
    const { status, signals } = await readResult(accountId, scanId)
    assert.deepEqual([status, signals], ['error', ['Error:EngineFailed']])
    assert.equal(tries, 3)
    const balance = await office.getBalance(accountId)
    assert.equal(balance?.remaining, before?.remaining)
    assert.equal(balance?.ledger, balance?.remaining)
  })

  for (const [what, passing] of Object.entries({
    'a full engine': new EngineBusy('full'),
    'a storage that is away': new StorageAway('away'),
  })) {
    test(`that meets ${what} waits as often as it takes`, async () => {
      let tries = 0
      const { submitUrl } = openWorker({
        async ofUrl() {
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

  test('is settled, and those who wait are told, when its content cannot be removed', async (t) => {
    t.mock.method(contents, 'remove', () => Promise.reject(new StorageAway('away')))
    const { submitFile, settled } = openWorker({})
    const { caller, accountId } = await newCaller()
    const { scanId } = await submitFile(caller, await write(Buffer.from('hello')), order)
    assert.equal((await readResult(accountId, scanId)).status, 'clean')
    await waitFor(() => settled.includes(scanId))
  })

  test('whose worker died three times is not scanned a fourth time', async () => {
    const { caller, accountId } = await newCaller()
    const scanId = await office.submit(caller.keyDigest)
    for (let i = 0; i < 3; i++) {
      assert.equal((await office.jobs.claim(5, 15_000)).length, 1)
      await office.endLeases()
    }
    let tries = 0
    openWorker({
      async ofUrl() {
        tries++
        return clean
      },
    })
    assert.deepEqual((await readResult(accountId, scanId)).signals, ['Error:EngineFailed'])
    assert.equal(tries, 0)
  })

  test('that somebody else has by now is not settled, and its content stays for them', async () => {
    const { submitFile, settled } = openWorker({
      async ofContent() {
        // As if this worker had been away for longer than its lease.
        await office.endLeases()
        await makeJobStore({ ...office, lanes: listLanes(['malware'], contents.places) }).claim(5, 60_000)
        return clean
      },
    })
    const { caller, accountId } = await newCaller()
    const { scanId } = await submitFile(caller, await write(Buffer.alloc(100_000)), order)
    await until(async () => (await office.jobs.countJobs()).running === 1)
    await new Promise((resolve) => setTimeout(resolve, 100))
    assert.equal((await office.scans.findScan(accountId, 'malware', scanId))?.status, 'pending')
    assert.deepEqual(settled, [])
    assert.equal(listFiles().length, 1)
    for (const name of listFiles()) rmSync(join(dir, name))
  })

  test('that runs when the worker stops is finished, and no other is begun', async () => {
    const entered = Promise.withResolvers<void>()
    const release = Promise.withResolvers<void>()
    const { submitUrl, worker, settled } = openWorker({
      async ofUrl() {
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
    assert.deepEqual(settled, [scanId])
    assert.equal((await office.scans.findScan(accountId, 'malware', later.scanId))?.status, 'pending')
  })

  test('whose content lies elsewhere, or whose engine is not here, is left to others', async () => {
    const { worker } = openWorker({})
    const { caller } = await newCaller()
    const elsewhere = { at: 'storage' as const, key: 'x' }
    const away = await office.submit(caller.keyDigest, { lane: 'malware another-store', source: elsewhere })
    const picture = await office.submit(caller.keyDigest, { lane: 'nsfw_image anywhere' })
    worker.poke()
    await new Promise((resolve) => setTimeout(resolve, 300))
    const others = makeJobStore({ ...office, lanes: ['malware another-store', 'nsfw_image anywhere'] })
    assert.deepEqual((await others.claim(5, 15_000)).map(({ scan }) => scan.id).sort(), [away, picture].sort())
  })

  test('that nobody could do for a day ends in an error, and gives its credit back', async () => {
    const { giveUp } = openWorker({})
    const { caller, accountId } = await newCaller()
    const before = await office.getBalance(accountId)
    const elsewhere = { at: 'storage' as const, key: 'x' }
    const scanId = await office.submit(caller.keyDigest, { lane: 'malware another-store', source: elsewhere })
    const dayAgo = new Date(Date.now() - 86_400_000)
    assert.deepEqual(await office.jobs.claimAbandoned(dayAgo, 10, 1000), [])
    await office.pool.query(`update jobs set created_at = now() - interval '25 hours' where scan_id = $1`, [scanId])
    for (const job of await office.jobs.claimAbandoned(dayAgo, 10, 1000)) await giveUp(job)
    assert.deepEqual((await readResult(accountId, scanId)).signals, ['Error:EngineFailed'])
    assert.equal((await office.getBalance(accountId))?.remaining, before?.remaining)
  })

  test('of a kind that is switched off is refused, uncharged', async () => {
    const { submitUrl } = openWorker({})
    const { caller, accountId } = await newCaller()
    const image = { ...order, kind: 'nsfw_image' as const }
    await assert.rejects(submitUrl(caller, 'https://origin.test/a', image), (error: Problem) => {
      assert.equal(error.refusal.kind, 'engine-unavailable')
      return true
    })
    assert.equal(await office.count('scans', accountId), 0)
  })

  test('rings for those who wait for it', async () => {
    const { submitUrl, bell } = openWorker({})
    const { caller } = await newCaller()
    const { scanId } = await submitUrl(caller, 'https://origin.test/a', order)
    const start = performance.now()
    await bell.wait(scanId, 60_000, new AbortController().signal)
    assert.ok(performance.now() - start < 30_000)
  })
})

async function until(isSo: () => boolean | Promise<boolean>) {
  while (!(await isSo())) await new Promise((resolve) => setTimeout(resolve, 20))
}

import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import { after, before, describe, type TestContext, test } from 'node:test'
import { makeRemoteScanStore } from '../../src/database/remote-scan-store.ts'
import type { JobContents } from '../../src/domain/ports/content-store.ts'
import type { ClaimedJob, JobStore } from '../../src/domain/ports/job-store.ts'
import { makeRunJob } from '../../src/domain/scans/jobs.ts'
import type { FinalResult } from '../../src/domain/scans/scan.ts'
import { systemClock } from '../../src/runtime/clock.ts'
import { openRemoteScanWorker, openScanWorker } from '../../src/workers/scan-workers.ts'
import { leaseMs, openTestJobs, type TestJobs, testQueue, toCompletion } from '../database/test-jobs.ts'
import { silentLog as log } from '../support/silent-log.ts'
import { newTestScan } from '../support/test-scan.ts'
import { waitFor } from '../support/wait-for.ts'

/** A run that starts, waits for `end`, and then records what it can. */
function newRun<Work>(record: (work: Work) => Promise<boolean>) {
  const end = Promise.withResolvers<void>()
  const seen: { started?: Work; isRecorded?: boolean } = {}
  const run = async (work: Work) => {
    seen.started = work
    await end.promise
    seen.isRecorded = await record(work)
  }
  return { run, seen, end: end.resolve }
}

/** A queue in memory. Results are recorded when `recorded` resolves. */
function newQueue(t: TestContext, length: number) {
  const limits: number[] = []
  const recorded = Promise.withResolvers<boolean>()
  const waiting = Array.from({ length }, (_, i): ClaimedJob => {
    const scan = newTestScan({ mode: 'async' })
    const lease = { scanId: scan.id, token: String(i) }
    const source = { at: 'url' as const, url: 'https://origin.test/a' }
    return { lease, accountId: 'a', flagsSexy: true, scan, attempt: 1, source, callbackUrl: null }
  })
  const jobs = {
    async claim(limit: number) {
      limits.push(limit)
      return waiting.splice(0, limit)
    },
    complete: () => recorded.promise,
    release: async () => {},
  } as unknown as JobStore
  t.after(() => recorded.resolve(true))
  return { jobs, waiting, limits, recorded }
}

/** The work on jobs whose scans end at once. */
const newRunJob = (jobs: JobStore) => {
  const result: FinalResult = {
    status: 'clean',
    signals: [],
    metadata: {},
    contentLength: 5,
    contentType: 'text/plain',
  }
  return makeRunJob({
    jobs,
    contents: {} as JobContents,
    scanner: { scanContent: async () => result, scanUrl: async () => result },
    clock: systemClock,
    observeVerdict: () => {},
    reportFailure: () => {},
    onCompleted: () => {},
  })
}

test('jobs whose results wait to be recorded leave room for others, for as many as may be scanned at once', async (t) => {
  const end = Promise.withResolvers<void>()
  const { jobs, waiting, limits } = newQueue(t, 8)
  let completing = 0
  const worker = openScanWorker({
    jobs,
    concurrency: 4,
    log,
    run: () => end.promise,
    countCompleting: () => completing,
  })
  t.after(async () => {
    end.resolve()
    await worker.close(1000)
  })
  await waitFor(() => waiting.length === 4)
  completing = 3
  worker.poke()
  await waitFor(() => waiting.length === 1)
  completing = 7
  worker.poke()
  await waitFor(() => limits.length === 3)
  assert.deepEqual(limits, [4, 3, 1])
})

test('a worker claims jobs while the results of as many others wait to be recorded, and no more', async (t) => {
  const { jobs, waiting, recorded } = newQueue(t, 10)
  const { run, countCompleting } = newRunJob(jobs)
  const worker = openScanWorker({ jobs, concurrency: 4, log, run, countCompleting })
  t.after(() => worker.close(1000))
  await waitFor(() => countCompleting() === 8)
  for (let claims = 0; claims < 3; claims++) {
    worker.poke()
    await new Promise(setImmediate)
  }
  assert.equal(waiting.length, 2)
  recorded.resolve(true)
  await waitFor(() => waiting.length === 0 && worker.countRunning() === 0)
  assert.equal(countCompleting(), 0)
})

test('a worker claims jobs when half of its places are free, and soon when slow jobs hold the others', async (t) => {
  t.mock.timers.enable({ apis: ['setTimeout', 'setInterval'] })
  const ends: (() => void)[] = []
  const { jobs, limits } = newQueue(t, 100)
  const run = () => new Promise<void>((resolve) => ends.push(resolve))
  const endJobs = async (count: number) => {
    for (const end of ends.splice(0, count)) end()
    await new Promise(setImmediate)
  }
  const worker = openScanWorker({ jobs, concurrency: 16, log, run, countCompleting: () => 0 })
  t.after(() => worker.stop())
  await new Promise(setImmediate)
  await endJobs(8)
  assert.deepEqual(limits, [16, 8])
  await endJobs(7)
  assert.deepEqual(limits, [16, 8])
  t.mock.timers.tick(50)
  assert.deepEqual(limits, [16, 8, 7])
})

test('jobs that are given up take no place of a worker, and leave none', async (t) => {
  const { jobs, waiting, recorded } = newQueue(t, 1)
  const { giveUp, countCompleting } = newRunJob(jobs)
  const givenUp = waiting.map(giveUp)
  assert.equal(countCompleting(), 0)
  recorded.resolve(true)
  await Promise.all(givenUp)
})

describe('work that does not end before its worker must stop is released: another worker claims it at once', () => {
  let stores: TestJobs
  before(async () => {
    stores = await openTestJobs()
  })
  after(() => stores.close())

  test('a background scan, whose attempt does not count', async (t) => {
    const { jobs } = stores
    const { digest } = await stores.register()
    const scanId = await stores.submit(digest)
    const { run, seen, end } = newRun((job: Parameters<typeof toCompletion>[0]) =>
      jobs.complete(job.lease, toCompletion(job)),
    )
    const worker = openScanWorker({ jobs, concurrency: 4, log, run, countCompleting: () => 0 })
    t.after(async () => {
      end()
      await worker.close(1000)
    })
    await waitFor(() => seen.started !== undefined)
    assert.deepEqual(await jobs.claim(10, leaseMs), [], 'a running job cannot be claimed')
    await worker.close(10)

    const [job] = await jobs.claim(10, leaseMs)
    assert.deepEqual([job?.scan.id, job?.attempt], [scanId, 1])
    end()
    await waitFor(() => seen.isRecorded !== undefined)
    assert.equal(seen.isRecorded, false, 'the first worker cannot complete it any more')
  })

  test('a remote scan, and other workers are notified', async (t) => {
    const { pool } = stores
    const remoteScans = makeRemoteScanStore({ pool, listQueues: () => [testQueue] })
    const sent: string[] = []
    const notifications = { send: (topic: string) => void sent.push(topic), on: () => {}, isListening: () => true }
    const id = randomUUID()
    const options = { kind: 'malware' as const, contentName: null, flagsSexy: true, accountId: id, identity: null }
    const source = { at: 'url' as const, url: 'http://example.com/' }
    await remoteScans.add({ id, queue: testQueue, source, options, ttlMs: 60_000 })
    const { run, seen, end } = newRun((scan: Awaited<ReturnType<typeof remoteScans.claim>>[number]) =>
      remoteScans.complete(scan.lease, { failure: 'down' }),
    )
    const worker = openRemoteScanWorker({ remoteScans, notifications, concurrency: 4, log, leaseMs, run })
    t.after(async () => {
      end()
      await worker.close(1000)
    })
    await waitFor(() => seen.started !== undefined)
    assert.deepEqual(await remoteScans.claim(10, leaseMs), [], 'a running scan cannot be claimed')
    await worker.close(10)

    assert.deepEqual(sent, ['remote-scans'])
    assert.equal((await remoteScans.claim(10, leaseMs))[0]?.lease.id, id)
    const { rows } = await pool.query('select attempts from remote_scans')
    assert.deepEqual(rows, [{ attempts: 1 }])
    end()
    await waitFor(() => seen.isRecorded !== undefined)
    assert.equal(seen.isRecorded, false, 'the first worker cannot complete it any more')
  })
})

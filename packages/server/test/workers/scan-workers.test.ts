import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import { after, before, describe, test } from 'node:test'
import { makeRemoteScanStore } from '../../src/database/remote-scan-store.ts'
import type { ClaimedJob, JobStore } from '../../src/domain/ports/job-store.ts'
import { openRemoteScanWorker, openScanWorker } from '../../src/workers/scan-workers.ts'
import { leaseMs, openTestJobs, type TestJobs, testQueue, toCompletion } from '../database/test-jobs.ts'
import { silentLog as log } from '../support/silent-log.ts'
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

test('jobs whose results wait to be recorded leave room for others, for as many as may be scanned at once', async () => {
  const limits: number[] = []
  const end = Promise.withResolvers<void>()
  const claimed = Array.from(
    { length: 8 },
    (_, i) => ({ lease: { scanId: String(i), token: String(i) } }) as ClaimedJob,
  )
  const jobs = {
    async claim(limit: number) {
      limits.push(limit)
      return claimed.splice(0, limit)
    },
    release: async () => {},
  } as unknown as JobStore
  let completing = 0
  const worker = openScanWorker({
    jobs,
    concurrency: 4,
    log,
    run: () => end.promise,
    countCompleting: () => completing,
  })
  await waitFor(() => claimed.length === 4)
  completing = 3
  worker.poke()
  await waitFor(() => claimed.length === 1)
  completing = 7
  worker.poke()
  await waitFor(() => limits.length === 3)
  assert.deepEqual(limits, [4, 3, 1])
  end.resolve()
  await worker.close(1000)
})

describe('work that does not end before its worker must stop is released: another worker claims it at once', () => {
  let stores: TestJobs
  before(async () => {
    stores = await openTestJobs()
  })
  after(() => stores.close())

  test('a background scan, whose attempt does not count', async () => {
    const { jobs } = stores
    const { digest } = await stores.register()
    const scanId = await stores.submit(digest)
    const { run, seen, end } = newRun((job: Parameters<typeof toCompletion>[0]) =>
      jobs.complete(job.lease, toCompletion(job)),
    )
    const worker = openScanWorker({ jobs, concurrency: 4, log, run })
    await waitFor(() => seen.started !== undefined)
    assert.deepEqual(await jobs.claim(10, leaseMs), [], 'a running job cannot be claimed')
    await worker.close(10)

    const [job] = await jobs.claim(10, leaseMs)
    assert.deepEqual([job?.scan.id, job?.attempt], [scanId, 1])
    end()
    await waitFor(() => seen.isRecorded !== undefined)
    assert.equal(seen.isRecorded, false, 'the first worker cannot complete it any more')
  })

  test('a remote scan, and other workers are notified', async () => {
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

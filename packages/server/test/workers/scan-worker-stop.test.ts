import assert from 'node:assert/strict'
import { after, afterEach, before, describe, test } from 'node:test'
import type { ClaimedJob } from '../../src/domain/ports/job-store.ts'
import { openScanWorker } from '../../src/workers/scan-workers.ts'
import { leaseMs, openTestJobs, type TestJobs, toCompletion } from '../database/test-jobs.ts'
import { silentLog as log } from '../support/silent-log.ts'
import { waitFor } from '../support/wait-for.ts'

describe('a worker that is stopped', () => {
  let stores: TestJobs
  before(async () => {
    stores = await openTestJobs()
  })
  afterEach(() => stores.clear())
  after(() => stores.close())

  const claimNow = () => stores.jobs.claim(10, leaseMs)

  test('gives back what does not end in time: another has it at once, as if it had not been tried', async () => {
    const { digest } = await stores.register()
    const scanId = await stores.submit(digest)
    const begun: ClaimedJob[] = []
    const { promise: resumed, resolve: wake } = Promise.withResolvers<void>()
    let wasOurs: boolean | undefined
    const worker = openScanWorker({
      jobs: stores.jobs,
      concurrency: 4,
      log,
      async run(job) {
        begun.push(job)
        await resumed
        wasOurs = await stores.jobs.complete(job.lease, toCompletion(job))
      },
    })
    await waitFor(() => begun.length === 1)
    assert.deepEqual(await claimNow(), [], 'it is taken')
    await worker.close(10)

    const [job] = await claimNow()
    assert.deepEqual([job?.scan.id, job?.attempt], [scanId, 1])
    wake()
    await waitFor(() => wasOurs !== undefined)
    assert.equal(wasOurs, false, 'and the first one can say nothing any more')
  })

  test('waits for what ends in time, and keeps nothing that it claimed too late', async () => {
    const { digest } = await stores.register()
    const { promise: mayClaim, resolve: letClaim } = Promise.withResolvers<void>()
    const begun: string[] = []
    const worker = openScanWorker({
      jobs: {
        ...stores.jobs,
        async claim(limit, ms) {
          await mayClaim
          return stores.jobs.claim(limit, ms)
        },
      },
      concurrency: 4,
      log,
      run: async ({ scan }) => void begun.push(scan.id),
    })
    const scanId = await stores.submit(digest)
    worker.stop()
    letClaim()
    await worker.close(1000)
    assert.deepEqual(begun, [])
    const [job] = await claimNow()
    assert.deepEqual([job?.scan.id, job?.attempt], [scanId, 1])
  })
})

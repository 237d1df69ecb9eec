import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { ClaimedJob } from '../../src/domain/ports/job-store.ts'
import { makeRunJob } from '../../src/domain/scans/jobs.ts'
import { noAbort } from '../engines/yara-support.ts'
import { newTestScan } from '../support/test-scan.ts'

const job = {
  scan: newTestScan(),
  lease: { scanId: 'a', token: 'b' },
  accountId: 'a',
  attempt: 1,
  callbackUrl: null,
  flagsSexy: false,
  source: { at: 'row' },
} as unknown as ClaimedJob

/** Only what a scan of content uses is there. */
const newDeps = (deps: object) => deps as unknown as Parameters<typeof makeRunJob>[0]

test('a job releases its content when the scanner throws at once, without a promise', async () => {
  let held = 0
  const { run } = makeRunJob(
    newDeps({
      jobs: { release: async () => {} },
      contents: {
        async open() {
          held++
          return { release: async () => void held-- }
        },
      },
      scanner: {
        scanContent() {
          throw new Error('at once')
        },
      },
      reportFailure: () => {},
    }),
  )
  await run(job, noAbort.signal)
  assert.equal(held, 0)
})

import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { Content } from '../../src/domain/content/content.ts'
import type { Caller } from '../../src/domain/ports/admission-gate.ts'
import type { FinalResult } from '../../src/domain/scans/scan.ts'
import { makeResultWaiters, makeScanning } from '../../src/domain/scans/scanning.ts'

const unused = () => assert.fail('not used')

test('a scan waits for others before its charge only while enough others keep the engines busy', async () => {
  const waits: (number | undefined)[] = []
  const running: PromiseWithResolvers<FinalResult>[] = []
  const { scanNow } = makeScanning({
    scans: { findScan: unused, recordFailure: unused },
    gate: {
      async admit({ mayWaitMs }) {
        waits.push(mayWaitMs)
        return { outcome: 'unknown-key' }
      },
    },
    repeats: { findRepeat: unused, deleteIdempotencyKeys: unused },
    scanner: {
      scanContent() {
        const scan = Promise.withResolvers<FinalResult>()
        running.push(scan)
        return scan.promise
      },
      scanUrl: unused,
    },
    describe: unused,
    resultWaiters: makeResultWaiters(),
    clock: { now: () => new Date(0) },
    region: 'test',
    fullLoad: 2,
    reportFailure: unused,
    observeVerdict: unused,
  })
  const request = {
    kind: 'malware' as const,
    address: '',
    contentName: null,
    countsRequest: true,
    idempotency: undefined,
  }
  const scans = [1, 2, 3].map(() => scanNow({} as Caller, {} as Content, request))
  const complete = async (index: number) => {
    const fields = { metadata: null, contentLength: 1, contentType: 'text/plain' }
    running[index]?.resolve({ status: 'clean', signals: [], ...fields })
    await scans[index]
  }
  await complete(1)
  await complete(0)
  await complete(2)
  const [first = 0, ...others] = waits
  assert(first > 0)
  assert.deepEqual(others, [0, 0])
})

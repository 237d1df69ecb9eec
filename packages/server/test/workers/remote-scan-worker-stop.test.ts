import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import { after, afterEach, before, describe, test } from 'node:test'
import { makeRemoteScanStore } from '../../src/database/remote-scan-store.ts'
import type { ClaimedRemoteScan, RemoteScanStore } from '../../src/domain/ports/remote-scan-store.ts'
import { openRemoteScanWorker } from '../../src/workers/scan-workers.ts'
import { silentLog as log } from '../support/silent-log.ts'
import { openTestDatabase } from '../support/test-database.ts'
import { waitFor } from '../support/wait-for.ts'

const leaseMs = 60_000
const queue = 'malware anywhere'

describe('a worker of remote scans that is stopped', () => {
  let database: Awaited<ReturnType<typeof openTestDatabase>>
  let remoteScans: RemoteScanStore
  before(async () => {
    database = await openTestDatabase()
    remoteScans = makeRemoteScanStore({ pool: database.pool, queues: [queue] })
  })
  afterEach(() => database.pool.query('truncate remote_scans'))
  after(() => database.drop())

  const told: string[] = []
  const notifications = { send: (topic: string) => void told.push(topic), on: () => {}, isListening: () => true }
  const claimNow = () => remoteScans.claim(10, leaseMs)

  async function ask(): Promise<string> {
    const id = randomUUID()
    const options = {
      kind: 'malware' as const,
      contentName: null,
      flagsSexy: true,
      accountId: randomUUID(),
      known: null,
    }
    await remoteScans.add({ id, queue, source: { at: 'url', url: 'http://example.com/' }, options, ttlMs: 60_000 })
    return id
  }

  test('gives back what does not end in time: another has it at once, as if it had not been tried', async () => {
    const id = await ask()
    const begun: ClaimedRemoteScan[] = []
    const { promise: resumed, resolve: wake } = Promise.withResolvers<void>()
    let wasOurs: boolean | undefined
    const worker = openRemoteScanWorker({
      remoteScans,
      notifications,
      concurrency: 4,
      log,
      leaseMs,
      async run(remoteScan) {
        begun.push(remoteScan)
        await resumed
        wasOurs = await remoteScans.complete(remoteScan.lease, { failure: 'down' })
      },
    })
    await waitFor(() => begun.length === 1)
    assert.deepEqual(await claimNow(), [], 'it is taken')
    await worker.close(10)

    assert.deepEqual(told, ['remote-scans'], 'others hear of it')
    const [remoteScan] = await claimNow()
    assert.equal(remoteScan?.lease.id, id)
    const { rows } = await database.pool.query('select attempts from remote_scans')
    assert.deepEqual(rows, [{ attempts: 1 }])
    wake()
    await waitFor(() => wasOurs !== undefined)
    assert.equal(wasOurs, false, 'and the first one can say nothing any more')
  })

  test('keeps nothing that it claimed too late', async () => {
    const id = await ask()
    const { promise: mayClaim, resolve: letClaim } = Promise.withResolvers<void>()
    const begun: string[] = []
    const worker = openRemoteScanWorker({
      remoteScans: {
        ...remoteScans,
        async claim(limit, ms) {
          await mayClaim
          return remoteScans.claim(limit, ms)
        },
      },
      notifications,
      concurrency: 4,
      log,
      leaseMs,
      run: async ({ lease }) => void begun.push(lease.id),
    })
    worker.stop()
    letClaim()
    await worker.close(1000)
    assert.deepEqual(begun, [])
    const [remoteScan] = await claimNow()
    assert.equal(remoteScan?.lease.id, id)
  })
})

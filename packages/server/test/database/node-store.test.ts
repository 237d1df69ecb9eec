import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import { after, before, beforeEach, describe, test } from 'node:test'
import { makeNodeStore } from '../../src/database/operations.ts'
import type { AssayNode } from '../../src/domain/ports/operations.ts'
import { openHeartbeat } from '../../src/workers/periodic-work.ts'
import { silentLog } from '../support/silent-log.ts'
import { openTestDatabase } from '../support/test-database.ts'

const newNode = (change: Partial<AssayNode> = {}): AssayNode => ({
  id: randomUUID(),
  name: 'box',
  roles: ['worker'],
  version: '1',
  startedAt: new Date(0),
  status: 'degraded',
  reasons: ['ClamAV is missing.'],
  faults: { 'malware engine': 'ClamAV is missing.' },
  engines: [{ name: 'ClamAV', version: null, signaturesAt: null }],
  ...change,
})

describe('a node', () => {
  let database: Awaited<ReturnType<typeof openTestDatabase>>
  let nodes: ReturnType<typeof makeNodeStore>
  before(async () => {
    database = await openTestDatabase()
    nodes = makeNodeStore(database)
  })
  beforeEach(() => database.pool.query('truncate nodes'))
  after(() => database.drop())
  const age = (interval: string) => database.pool.query(`update nodes set seen_at = now() - interval '${interval}'`)

  test('is listed with the state of its last heartbeat', async () => {
    const node = newNode()
    await nodes.recordHeartbeat({ ...node, status: 'ready', reasons: [] })
    await nodes.recordHeartbeat(node)
    const [seen, ...others] = await nodes.listNodes()
    assert.deepEqual(others, [])
    assert.deepEqual({ ...seen, seenAt: undefined }, { ...node, isAlive: true, seenAt: undefined })
  })

  test('counts as a worker while it sends heartbeats', async () => {
    await nodes.recordHeartbeat(newNode({ roles: ['api'] }))
    assert.equal(await nodes.countWorkers(), 0)
    await nodes.recordHeartbeat(newNode({ roles: ['api', 'worker'] }))
    assert.equal(await nodes.countWorkers(), 1)
    await age('14 seconds')
    assert.equal(await nodes.countWorkers(), 1)
    await age('16 seconds')
    assert.equal(await nodes.countWorkers(), 0)
    assert.deepEqual(
      (await nodes.listNodes()).map(({ isAlive }) => isAlive),
      [false, false],
    )
  })

  test('is deleted after an hour without a heartbeat, not before', async () => {
    await nodes.recordHeartbeat(newNode())
    await age('59 minutes')
    assert.equal(await nodes.deleteSilent(), 0)
    await age('61 minutes')
    assert.equal(await nodes.deleteSilent(), 1)
  })

  test('is listed from its first heartbeat until it stops', async () => {
    const heartbeat = openHeartbeat({ nodes, describe: async () => newNode(), log: silentLog })
    while ((await nodes.countWorkers()) === 0) await new Promise(setImmediate)
    await heartbeat.close()
    assert.deepEqual(await nodes.listNodes(), [])
  })
})

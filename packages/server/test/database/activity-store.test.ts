import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import { after, before, beforeEach, describe, test } from 'node:test'
import { findPercentileMs } from '../../src/admin/scan-handlers.ts'
import { makeActivityStore } from '../../src/database/activity-store.ts'
import type { NodeActivity, NodeSample } from '../../src/domain/ports/scan-store.ts'
import { readActivityTotals, requestSeconds } from '../../src/runtime/activity-totals.ts'
import { makeMetrics } from '../../src/runtime/metrics.ts'
import { openActivityRecorder } from '../../src/workers/activity-recorder.ts'
import { silentLog } from '../support/silent-log.ts'
import { openTestDatabase } from '../support/test-database.ts'

const hour = { steps: 60, stepSeconds: 60 }
const day = { steps: 96, stepSeconds: 900 }
const minuteMs = 60_000
const none = { clean: 0, threat: 0, error: 0 }

const newActivity = (clean: number, sample: Partial<NodeSample> = {}): NodeActivity & NodeSample => ({
  scans: { malware: { clean, threat: 1, error: 0 }, nsfw_image: { clean: 0, threat: 0, error: 2 } },
  engineMs: { malware: 100, nsfw_image: 50 },
  latency: [1, 0, 2],
  deliveries: { delivered: 3, failed: 1 },
  memoryBytes: 1000,
  queue: { waiting: 5, oldestSeconds: 7 },
  ...sample,
})

describe('activity', () => {
  let database: Awaited<ReturnType<typeof openTestDatabase>>
  let store: ReturnType<typeof makeActivityStore>
  const [one, other] = [randomUUID(), randomUUID()]
  before(async () => {
    database = await openTestDatabase()
    store = makeActivityStore(database)
  })
  beforeEach(() => database.pool.query('truncate node_minutes'))
  after(() => database.drop())
  /** Half a minute before the current minute, so that two statements hit the same one. */
  const findAgoMs = () => (database.clock.now().getTime() % minuteMs) + minuteMs / 2

  test('of nodes is added up; the queue is the same for all of them', async () => {
    const agoMs = findAgoMs()
    await store.record(one, newActivity(10), agoMs)
    await store.record(other, newActivity(20, { queue: { waiting: 4, oldestSeconds: 9 } }), agoMs)
    const steps = await store.listServiceSteps(hour)
    assert.equal(steps.length, 60)
    const [step, ...others] = steps.filter(({ memoryBytes }) => memoryBytes !== null)
    assert.deepEqual(others, [])
    assert(step)
    const { at, latency, ...rest } = step
    assert.equal(at.getTime() % minuteMs, 0)
    assert.deepEqual(rest, {
      scans: { malware: { clean: 30, threat: 2, error: 0 }, nsfw_image: { ...none, error: 4 } },
      engineMs: { malware: 200, nsfw_image: 100 },
      deliveries: { delivered: 6, failed: 2 },
      memoryBytes: 2000,
      queue: { waiting: 5, oldestSeconds: 9 },
    })
    assert.deepEqual(latency.slice(0, 4), [2, 0, 4, 0])
    assert.equal(latency.length, requestSeconds.length + 1)
  })

  test('of a minute that is recorded twice is added to its row, with the highest memory and queue', async () => {
    const agoMs = findAgoMs()
    await store.record(one, newActivity(10, { memoryBytes: 3000 }), agoMs)
    await store.record(one, newActivity(5, { queue: { waiting: 50, oldestSeconds: 1 } }), agoMs)
    const { rows } = await database.pool.query(
      `select malware_clean as clean, memory_bytes::int as memory, jobs_waiting as waiting,
         jobs_oldest_seconds as oldest from node_minutes`,
    )
    assert.deepEqual(rows, [{ clean: 15, memory: 3000, waiting: 50, oldest: 7 }])
    const counts = (await store.listServiceSteps(hour)).map(({ latency }) => latency[2] ?? 0)
    assert.equal(
      counts.reduce((sum, count) => sum + count, 0),
      4,
    )
  })

  test('is rolled up into quarters of an hour: work is added, memory and queue are the highest', async () => {
    const recorded = { clean: 0, steps: new Set<number>() }
    for (const minutes of [0, 1, 16, 16 + 30, 700, 1400]) {
      await store.record(one, newActivity(minutes + 1, { memoryBytes: 10 + minutes }), minutes * minuteMs)
      recorded.clean += minutes + 1
    }
    const steps = await store.listServiceSteps(day)
    assert.equal(steps.length, 96)
    for (const [n, { at }] of steps.entries()) {
      assert.equal(at.getTime() % (15 * minuteMs), 0)
      assert.equal(at.getTime(), (steps[0]?.at.getTime() ?? 0) + n * 15 * minuteMs)
    }
    assert.equal(
      steps.reduce((sum, { scans }) => sum + scans.malware.clean, 0),
      recorded.clean,
    )
    const memory = steps.flatMap(({ memoryBytes }) => memoryBytes ?? [])
    assert.equal(Math.max(...memory), 1410)
    const lastHour = await store.listServiceSteps(hour)
    assert.equal(
      lastHour.reduce((sum, { scans }) => sum + scans.malware.clean, 0),
      1 + 2 + 17 + 47,
    )
  })

  test('ends after two days, and rows of a clock that was set back end too', async () => {
    const dayMs = 86_400_000
    await store.record(one, newActivity(1), 1.9 * dayMs)
    await store.record(one, newActivity(1), 2.1 * dayMs)
    await store.record(one, newActivity(1), -2 * 3_600_000)
    assert.equal(await store.deleteOld(2), 2)
    assert.equal(await store.deleteOld(2), 0)
  })

  test('of an account counts its own scans, times and webhooks', async () => {
    const [mine, theirs] = [randomUUID(), randomUUID()]
    const scan = (account: string, kind: string, status: string, seconds: number | null) =>
      database.pool.query(
        `insert into scans (id, account_id, kind, mode, status, region, content_length, content_type, created_at,
           completed_at)
         values ($1, $2, $3, 'sync', $4, 'x', 1, 'text/plain', now() - interval '5 minutes',
           now() - interval '5 minutes' + $5 * interval '1 second')`,
        [randomUUID(), account, kind, status, seconds],
      )
    await scan(mine, 'malware', 'clean', 0.003)
    await scan(mine, 'malware', 'threat', 0.3)
    await scan(mine, 'nsfw_image', 'pending', null)
    await scan(theirs, 'malware', 'clean', 0.003)
    for (const state of ['delivered', 'dead'])
      await database.pool.query(
        `insert into deliveries (id, scan_id, account_id, url, host, body, state, next_at)
         values ($1, $1, $2, 'http://a', 'a', '', $3, null)`,
        [randomUUID(), mine, state],
      )
    await database.pool.query(
      `insert into jobs (scan_id, account_id, queue, url, created_at)
       values ($1, $2, 'q', 'http://a', now() - interval '1 minute')`,
      [randomUUID(), mine],
    )
    // A job that a worker has claimed does not wait.
    await database.pool.query(
      `insert into jobs (scan_id, account_id, queue, url, held_until) values ($1, $2, 'q', 'http://a', now())`,
      [randomUUID(), mine],
    )
    for (const span of [hour, day]) {
      const steps = await store.listAccountSteps(mine, span)
      assert.equal(steps.length, span.steps)
      const scanned = steps.filter(({ scans }) => scans.malware.clean > 0)
      assert.deepEqual(
        scanned.map(({ scans }) => scans),
        [{ malware: { clean: 1, threat: 1, error: 0 }, nsfw_image: none }],
      )
      assert.deepEqual(
        scanned[0]?.latency.flatMap((count, n) => (count > 0 ? [[requestSeconds[n], count]] : [])),
        [
          [0.005, 1],
          [0.5, 1],
        ],
      )
      const delivered = steps.map(({ deliveries }) => deliveries).filter(({ delivered }) => delivered > 0)
      assert.deepEqual(delivered, [{ delivered: 1, failed: 1 }])
    }
    const { waiting, oldestSeconds } = await store.countJobsOf(mine, 100)
    assert.equal(waiting, 1)
    assert(oldestSeconds >= 60)
    assert.deepEqual(await store.countJobsOf(theirs, 100), { waiting: 0, oldestSeconds: 0 })
  })

  test('of an account tells how long its queue was, and the age of the oldest scan', async () => {
    const [mine, theirs] = [randomUUID(), randomUUID()]
    const thisMinute = (await database.pool.query("select date_trunc('minute', now()) as at")).rows[0].at as Date
    const at = (minutes: number) => new Date(thisMinute.getTime() - minutes * 60_000)
    const scan = (account: string, mode: string, began: number, ended: number | null) =>
      database.pool.query(
        `insert into scans (id, account_id, kind, mode, status, region, content_length, content_type, created_at,
           completed_at)
         values ($1, $2, 'malware', $3, 'clean', 'x', 1, 'text/plain', $4, $5)`,
        [randomUUID(), account, mode, at(began), ended === null ? null : at(ended)],
      )
    await scan(mine, 'async', 90, 20)
    await scan(mine, 'async', 30, 10)
    await scan(mine, 'async', 15, null)
    await scan(mine, 'sync', 30, 10)
    await scan(theirs, 'async', 30, 10)
    // Older than two spans, so that its job alone tells of it.
    await database.pool.query(
      `insert into jobs (scan_id, account_id, queue, url, created_at) values ($1, $2, 'q', 'http://a', $3)`,
      [randomUUID(), mine, at(200)],
    )
    const steps = await store.listAccountSteps(mine, hour)
    const queueAt = (minutes: number) => steps.find((step) => step.at.getTime() === at(minutes).getTime())?.queue
    assert.deepEqual(
      [40, 25, 16, 12, 5].map((minutes) => queueAt(minutes)?.waiting),
      [2, 3, 2, 3, 2],
    )
    assert.equal(queueAt(40)?.oldestSeconds, (200 - 39) * 60)
    await database.pool.query('delete from jobs where account_id = $1', [mine])
    const later = await store.listAccountSteps(mine, hour)
    const ageAt = (minutes: number) => later.find((step) => step.at.getTime() === at(minutes).getTime())?.queue
    assert.deepEqual(ageAt(40), { waiting: 1, oldestSeconds: (90 - 39) * 60 })
    assert.deepEqual(ageAt(16), { waiting: 1, oldestSeconds: (30 - 15) * 60 })
    assert.deepEqual(ageAt(5), { waiting: 1, oldestSeconds: (15 - 4) * 60 })
  })

  test('is recorded from the metrics, once, also after a write that failed', async () => {
    const metrics = makeMetrics({ region: 'x', version: '1' })
    const observeEngine = metrics.timer('assay_scan_duration_seconds', 'x', ['kind'])
    // Counted before the recorder opens.
    metrics.countVerdict('malware', 'clean', false)
    let isFailing = false
    const recorder = await openActivityRecorder({
      store: {
        async record(...values) {
          if (isFailing) throw new Error('no database')
          await store.record(...values)
        },
      },
      nodeId: one,
      clock: database.clock,
      readTotals: async () => readActivityTotals(await metrics.collect()),
      readQueue: async () => ({ waiting: 0, oldestSeconds: 0 }),
      log: silentLog,
    })
    metrics.countVerdict('malware', 'threat', false)
    metrics.countVerdict('malware', 'threat', true)
    metrics.observeRequest('Malware.ScanFile', 201, 0.004)
    metrics.observeRequest('General.Ping', 200, 0.004)
    metrics.countWebhookAttempt('delivered')
    metrics.countWebhookAttempt('retried')
    observeEngine(1.5, 'malware')
    isFailing = true
    await assert.rejects(recorder.record())
    isFailing = false
    await recorder.record()
    await recorder.record()
    metrics.countVerdict('nsfw_image', 'error', false)
    await recorder.close()
    const steps = await store.listServiceSteps(hour)
    const sum = (read: (step: (typeof steps)[number]) => number) => steps.reduce((all, step) => all + read(step), 0)
    assert.deepEqual(
      [
        sum(({ scans }) => scans.malware.clean),
        sum(({ scans }) => scans.malware.threat),
        sum(({ scans }) => scans.nsfw_image.error),
        sum(({ latency }) => latency.reduce((all, count) => all + count, 0)),
        sum(({ engineMs }) => engineMs.malware),
        sum(({ deliveries }) => deliveries.delivered),
        sum(({ deliveries }) => deliveries.failed),
      ],
      [0, 1, 1, 1, 1500, 1, 1],
    )
    assert(Math.max(...steps.map(({ memoryBytes }) => memoryBytes ?? 0)) > 10_000_000)
  })
})

test('percentiles are estimated as Prometheus does', () => {
  const histogram = requestSeconds.map(() => 0)
  assert.equal(findPercentileMs(histogram, 0.5), null)
  histogram[0] = 2
  assert.deepEqual([findPercentileMs(histogram, 0.5), findPercentileMs(histogram, 1)], [1, 2])
  histogram[8] = 98
  assert.equal(findPercentileMs(histogram, 0.51), 750)
  histogram[12] = 100
  assert.equal(findPercentileMs(histogram, 0.99), 60_000)
})

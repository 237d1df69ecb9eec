import assert from 'node:assert/strict'
import { randomBytes } from 'node:crypto'
import { test } from 'node:test'
import { setTimeout as pause } from 'node:timers/promises'
import { openBalancer } from '../../../../acceptance/support/balancer.ts'
import { type Service, startService } from '../../../../acceptance/support/start-service.ts'
import { makeCaller, newNoise, toId } from '../../../../acceptance/support/submitting.ts'
import { waitUntil } from '../../../../acceptance/support/wait-until.ts'
import { openTestDatabase } from '../support/test-database.ts'

const apiKey = 'rolling-restart-key'
const pauseMs = 180

test('two services are restarted one after the other under load, and no request is lost', async () => {
  const database = await openTestDatabase()
  const balancer = await openBalancer()
  const settings = {
    ASSAY_DATABASE_URL: database.url,
    ASSAY_BOOTSTRAP_KEY: apiKey,
    ASSAY_NSFW_PROFILE: 'off',
    ASSAY_MASTER_KEY: randomBytes(32).toString('hex'),
    ASSAY_DRAIN_DELAY_SECONDS: '1',
  }
  const running = new Set<Service>()
  const start = async () => {
    const service = await startService(settings)
    running.add(service)
    balancer.add(service.url)
    await waitUntil('the balancer to see it', () => balancer.isReady(service.url))
    return service
  }
  const services = [await start(), await start()]
  const load = startLoad(balancer.url)
  try {
    await waitUntil('some load', () => load.counts.size > 0)
    for (const service of services) {
      await service.stop()
      running.delete(service)
      balancer.remove(service.url)
      await start()
    }
    const { ids } = await load.end()
    const counts = Object.fromEntries(load.counts)
    assert.deepEqual(Object.keys(counts).sort(), ['200', '201', '202'], JSON.stringify(counts))
    assert.ok((counts['201'] ?? 0) > 20 && ids.length > 20, JSON.stringify(counts))

    const caller = makeCaller(balancer.url, apiKey)
    const results = await Promise.all(ids.map((id) => caller.complete('malware', id)))
    const others = results.filter(({ status }) => status !== 'clean')
    assert.deepEqual(others, [])
    assert.equal(await caller.readSpent(), (counts['201'] ?? 0) + ids.length)
  } finally {
    await load.end().catch(() => {})
    for (const service of running) await service.stop()
    await balancer.close()
    await database.drop()
  }
})

/** Pings, scans and submits one after the other, with small pauses: without them the load takes the test's time. */
function startLoad(url: string) {
  const caller = makeCaller(url, apiKey)
  const counts = new Map<string, number>()
  const ids: string[] = []
  let isOver = false
  const note = (status: number) => void counts.set(String(status), (counts.get(String(status)) ?? 0) + 1)
  const clients = Promise.all([
    ...Array.from({ length: 2 }, async () => {
      while (!isOver) {
        await pause(pauseMs)
        const answer = await fetch(`${url}/v1/ping`, { headers: { 'x-api-key': apiKey } })
        await answer.body?.cancel()
        note(answer.status)
      }
    }),
    ...Array.from({ length: 2 }, async () => {
      while (!isOver) {
        await pause(pauseMs)
        note((await caller.sendFile('malware', 'scan', newNoise(1000))).status)
      }
    }),
    ...Array.from({ length: 2 }, async () => {
      while (!isOver) {
        await pause(pauseMs)
        const answer = await caller.sendFile('malware', 'submit', newNoise(1000))
        note(answer.status)
        if (answer.status === 202) ids.push(toId(answer))
      }
    }),
  ])
  return {
    counts,
    async end() {
      isOver = true
      await clients
      return { ids }
    },
  }
}

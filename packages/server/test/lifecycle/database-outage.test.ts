import assert from 'node:assert/strict'
import { randomBytes } from 'node:crypto'
import { test } from 'node:test'
import { assertProblem } from '../../../../acceptance/support/problems.ts'
import { startService } from '../../../../acceptance/support/start-service.ts'
import { makeCaller, toId } from '../../../../acceptance/support/submitting.ts'
import { openDatabaseProxy } from '../../../../acceptance/support/tcp-proxy.ts'
import { waitUntil } from '../../../../acceptance/support/wait-until.ts'
import { openTestDatabase } from '../support/test-database.ts'

const apiKey = 'database-outage-key'

test('a database that is cut off costs a 503 and no credit, is told of in words, and is taken up again', async () => {
  const database = await openTestDatabase()
  const proxy = await openDatabaseProxy(database.url)
  const service = await startService({
    ASSAY_DATABASE_URL: proxy.url,
    ASSAY_BOOTSTRAP_KEY: apiKey,
    ASSAY_NSFW_PROFILE: 'off',
  })
  const caller = makeCaller(service.url, apiKey)
  const readReadiness = async () => {
    const answer = await fetch(`${service.url}/readyz`)
    return { code: answer.status, ...((await answer.json()) as { reasons: string[] }) }
  }
  try {
    const first = toId(await caller.sendFile('malware', 'submit', randomBytes(1000)))
    assert.equal((await caller.complete('malware', first)).status, 'clean')

    proxy.setMode('cut')
    await waitUntil('red health', async () => (await readReadiness()).code === 503)
    assert.match((await readReadiness()).reasons.join(), /The database (has not answered for|does not answer)/)
    for (const how of ['scan', 'submit'] as const) {
      const answer = await caller.sendFile('malware', how, randomBytes(100_000))
      assert.match(String(answer.headers['retry-after']), /^[1-9]\d*$/)
      await assertProblem(answer, { status: 503, kind: 'unavailable' })
    }
    await assertProblem(await caller.fetchResult('malware', first), { status: 503, kind: 'unavailable' })

    proxy.setMode('pass')
    await waitUntil('green health', async () => (await readReadiness()).code === 200)
    const second = toId(await caller.sendFile('malware', 'submit', randomBytes(1000)))
    assert.equal((await caller.complete('malware', second)).status, 'clean')
    assert.equal(await caller.readSpent(), 2)
    const listTold = () => service.log().match(/the database (is unavailable|answers again)/g) ?? []
    await waitUntil('both lines in the log', () => listTold().length >= 2)
    assert.deepEqual(listTold(), ['the database is unavailable', 'the database answers again'])
  } finally {
    proxy.setMode('pass')
    await service.stop()
    await proxy.close()
    await database.drop()
  }
})

import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { headers, operations } from '@assay/contract'
import { openTestDatabase } from '../../packages/server/test/support/test-database.ts'
import { sendTo } from '../support/http.ts'
import { toRequest } from '../support/operation.ts'
import { assertProblem } from '../support/problems.ts'
import { type Service, startService, withoutImages } from '../support/start-service.ts'
import { waitUntil } from '../support/wait-until.ts'

/** This file breaks the database of its service, so it does not use the shared one. */
let database: Awaited<ReturnType<typeof openTestDatabase>>
let service: Service
before(async () => {
  database = await openTestDatabase()
  service = await startService({ ...withoutImages, ASSAY_DATABASE_URL: database.url })
  await database.pool.query('alter table api_keys rename to hidden_keys')
})
after(async () => {
  await service.stop()
  await database.drop()
})

const send = (operation: (typeof operations)[number]) => {
  const request = toRequest(operation)
  return sendTo(service.url, { ...request, headers: { ...request.headers, [headers.apiKey]: service.apiKey } })
}

for (const operation of operations) {
  test(`500: ${operation.id} hides the cause from the caller and logs it`, async () => {
    const answer = await send(operation)
    await assertProblem(answer, { status: 500, kind: 'internal' })
    assert.doesNotMatch(answer.text, /api_keys|relation|select|\.ts|node:/i)
    const { traceId } = JSON.parse(answer.text)
    const hasCause = (line: string) => line.includes(traceId) && line.includes('api_keys')
    await waitUntil('the cause in the log', async () => service.log().split('\n').some(hasCause))
    assert(!service.log().includes(service.apiKey))
  })
}

test('once the fault is fixed the service responds again, without a restart', async () => {
  await database.pool.query('alter table hidden_keys rename to api_keys')
  for (const operation of operations.filter(({ does }) => does === 'ping' || does === 'account')) {
    assert.equal((await send(operation)).status, 200, operation.id)
  }
})

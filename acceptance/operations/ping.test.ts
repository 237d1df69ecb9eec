import assert from 'node:assert/strict'
import { test } from 'node:test'
import { getSharedService } from '../support/shared-service.ts'

const service = getSharedService()

test('ping answers 200 with an empty body', async () => {
  const { api_key } = await service.createAccount()
  const answer = await fetch(`${service.url}/v1/ping`, { headers: { 'x-api-key': api_key } })
  assert.equal(answer.status, 200)
  assert.equal(await answer.text(), '')
})

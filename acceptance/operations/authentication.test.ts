import assert from 'node:assert/strict'
import { before, test } from 'node:test'
import { headers, operations } from '@assay/contract'
import { sendTo } from '../support/http.ts'
import { toRequest } from '../support/operation.ts'
import { assertEmpty } from '../support/problems.ts'
import { getSharedService } from '../support/shared-service.ts'

const service = getSharedService()
const badKeys: Record<string, string | string[]> = {}
let goodKey = ''

before(async () => {
  const [account, suspended, expired, withRevoked] = await Promise.all([
    service.createAccount(),
    service.createAccount(),
    service.createAccount('--expires', '2020-01-01'),
    service.createAccount(),
  ])
  goodKey = account.api_key
  const create = async (...options: string[]) =>
    (await service.operate('keys', 'create', '--account', withRevoked.id, ...options)) as Record<
      'id' | 'api_key',
      string
    >
  const [revoked, expiredKey] = await Promise.all([create(), create('--expires', '2020-01-01')])
  await service.operate('keys', 'revoke', revoked.id)
  await service.operate('accounts', 'suspend', suspended.id)
  badKeys['a revoked key'] = revoked.api_key
  badKeys['an expired key'] = expiredKey.api_key
  badKeys['a suspended account'] = suspended.api_key
  badKeys['an expired subscription'] = expired.api_key
  badKeys['two good keys that differ'] = [goodKey, withRevoked.api_key]
  badKeys['a good key and an empty one'] = [goodKey, '']
  badKeys['two keys in one header'] = `${goodKey}, ${goodKey}`
  badKeys['a key in another case'] = goodKey.toUpperCase()
  badKeys['a key with something after it'] = `${goodKey}x`
})

const sendWith = (operation: (typeof operations)[number], key: string | string[]) => {
  const request = toRequest(operation)
  return sendTo(service.url, { ...request, headers: { ...request.headers, [headers.apiKey]: key } })
}

for (const operation of operations) {
  test(`${operation.id} refuses every key that is not valid or not valid any more`, async () => {
    for (const [why, key] of Object.entries(badKeys)) {
      const answer = await sendWith(operation, key)
      assertEmpty(answer, 401)
      assert.equal(answer.headers['www-authenticate'], 'ApiKey', why)
      assert.equal(answer.headers['x-api-credit-limit'], undefined, why)
      assert.equal(answer.headers['x-rate-limit-limit'], undefined, why)
    }
  })

  test(`${operation.id} accepts one valid key, also when it is sent twice`, async () => {
    assert.notEqual((await sendWith(operation, goodKey)).status, 401)
    assert.notEqual((await sendWith(operation, [goodKey, goodKey])).status, 401)
  })
}

test('a key in the query or in an Authorization header is ignored', async () => {
  assertEmpty(await sendTo(service.url, { method: 'GET', path: `/v1/ping?X-API-Key=${goodKey}` }), 401)
  const authorization = `ApiKey ${goodKey}`
  assertEmpty(await sendTo(service.url, { method: 'GET', path: '/v1/ping', headers: { authorization } }), 401)
})

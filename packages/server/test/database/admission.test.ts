import assert from 'node:assert/strict'
import { after, before, describe, test } from 'node:test'
import { type CreditGate, makeAdmission, makeRecentCallers } from '../../src/domain/accounts/admission.ts'
import { openTestStores, type TestStores } from '../support/test-stores.ts'

describe('an account without credits', () => {
  let stores: TestStores
  let apiKey: string
  before(async () => {
    stores = await openTestStores()
    apiKey = (await stores.register({ credits: 0 })).apiKey
  })
  after(() => stores.close())

  const admit = async (creditGate: CreditGate, isScan: boolean) => {
    const { refused } = await makeAdmission({
      gate: stores.gate,
      creditGate,
      recentCallers: makeRecentCallers(),
    }).admitRequest([apiKey], isScan)
    return refused?.refusal.kind
  }

  test('is refused every request by default', async () => {
    assert.equal(await admit('all', false), 'out-of-credit')
    assert.equal(await admit('all', true), 'out-of-credit')
  })

  test('is refused scans alone when the operator says so', async () => {
    assert.equal(await admit('scans', false), undefined)
    assert.equal(await admit('scans', true), 'out-of-credit')
  })
})

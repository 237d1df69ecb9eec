import assert from 'node:assert/strict'
import { after, before, describe, test } from 'node:test'
import { type CreditGate, makeAdmission } from '../../src/domain/accounts/admission.ts'
import { makeTrust } from '../../src/domain/accounts/trust.ts'
import { systemClock } from '../../src/runtime/clock.ts'
import { openTestOffice, type TestOffice } from '../support/test-office.ts'

describe('an account without credits', () => {
  let office: TestOffice
  let apiKey: string
  before(async () => {
    office = await openTestOffice()
    apiKey = (await office.register({ credits: 0 })).apiKey
  })
  after(() => office.close())

  const admit = async (creditGate: CreditGate, isScan: boolean) => {
    const { refused } = await makeAdmission({
      gate: office.gate,
      creditGate,
      trust: makeTrust({ clock: systemClock }),
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

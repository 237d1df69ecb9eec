import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { Account, operations } from '@assay/contract'
import { testEveryOperation } from '../support/every-operation.ts'
import { type Subject, useOperation } from '../support/operation.ts'
import { assertEmpty } from '../support/problems.ts'
import { testResultRules } from '../support/result-rules.ts'
import { testNothingWasCharged } from '../support/scan-operation.ts'
import { Check } from '../support/schema-check.ts'

const rules = { ping: testPing, account: testAccount, result: testResultRules }

for (const { id, does } of operations) {
  if (does === 'file' || does === 'url') continue
  describe(id, () => {
    const subject = useOperation(id)
    rules[does](subject)
    testEveryOperation(subject)
    testNothingWasCharged(subject)
  })
}

function testPing(subject: Subject) {
  test('200: a valid key gets an empty body, with GET and with HEAD', async () => {
    assertEmpty(await subject.sendGood(), 200)
    assertEmpty(await subject.send({ method: 'HEAD' }), 200)
  })
}

function testAccount(subject: Subject) {
  test('200: the response has plan, credits and period of the account, and nothing else', async () => {
    const answer = await subject.sendGood()
    assert.equal(answer.status, 200)
    assert.match(String(answer.headers['content-type']), /^application\/json(; charset=utf-8)?$/)
    const account = JSON.parse(answer.text)
    assert(Check(Account, account), answer.text)
    const { plan, credit_limit, credit_remaining } = account
    assert.deepEqual(
      { plan, credit_limit, credit_remaining },
      { plan: 'standard', credit_limit: 1000, credit_remaining: 1000 },
    )
    const { created_date, period_start_date, period_end_date } = account
    const [created, start, end] = [created_date, period_start_date, period_end_date].map((text) => Date.parse(text))
    assert(created !== undefined && start !== undefined && end !== undefined)
    assert(created <= Date.now() && start <= Date.now() && Date.now() < end, 'the period is the current one')
  })
}

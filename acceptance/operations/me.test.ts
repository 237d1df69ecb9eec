import assert from 'node:assert/strict'
import { test } from 'node:test'
import { Account } from '@assay/contract'
import { Check } from 'typebox/value'
import { testEveryOperation } from '../support/every-operation.ts'
import { useOperation } from '../support/operation.ts'
import { testNothingWasCharged } from '../support/scan-operation.ts'

const subject = useOperation('General.Me')

test('200: the account comes back with its plan, credits and period, and nothing else', async () => {
  const answer = await subject.sendGood()
  assert.equal(answer.status, 200)
  assert.match(String(answer.headers['content-type']), /^application\/json(; charset=utf-8)?$/)
  const account = JSON.parse(answer.text)
  assert(Check(Account, account), answer.text)
  assert.equal(account.plan, 'standard')
  assert.equal(account.credit_limit, 1000)
  assert.equal(account.credit_remaining, 1000)
  const [created, start, end] = [account.created_date, account.period_start_date, account.period_end_date].map(
    Date.parse,
  )
  assert(created !== undefined && start !== undefined && end !== undefined)
  assert(Math.abs(created - Date.now()) < 120_000, 'created just now')
  assert(start <= Date.now() && Date.now() < end, 'the period is the current one')
})

testEveryOperation(subject)
testNothingWasCharged(subject)

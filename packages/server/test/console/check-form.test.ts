import assert from 'node:assert/strict'
import { test } from 'node:test'
import { AcceptLink, AddListEntry, CreateKey, checkForm, SavePlan } from '@assay/contract/admin'

test('a form that is right has no errors, with fields that nobody asked for left alone', () => {
  assert.deepEqual(checkForm(CreateKey, { name: 'build', other: 1 }), {})
  assert.deepEqual(checkForm(CreateKey, { name: 'build', expires_at: null, is_test: true }), {})
})

test('each field that is wrong has a sentence that says what to do', () => {
  assert.deepEqual(checkForm(AcceptLink, { token: 't', name: 'Ada', email: 'ada', password: 'short' }), {
    email: ['Give an address such as ada@example.com.'],
    password: ['Give at least 12 characters.'],
  })
  assert.deepEqual(checkForm(AcceptLink, {}), {
    ...{ token: ['This is needed.'], name: ['This is needed.'] },
    ...{ email: ['This is needed.'], password: ['This is needed.'] },
  })
  assert.deepEqual(checkForm(SavePlan, { credits_per_period: -1, rate: '60/1m' }), {
    credits_per_period: ['Give 0 or more.'],
  })
  const entry = { list: 'grey', matches: 'sha256', value: 'x', reason: 'y' }
  assert.deepEqual(checkForm(AddListEntry, entry), { list: ['Choose one of allow, block.'] })
  assert.deepEqual(checkForm(CreateKey, { name: 'a\u0000b' }), {
    name: ['This has a character that cannot be stored.'],
  })
})

test('what is no form at all is one in which everything is missing', () => {
  for (const form of [{}, Object.create(null)])
    assert.deepEqual(checkForm(CreateKey, form), { name: ['This is needed.'] })
})

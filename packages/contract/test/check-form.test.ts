import assert from 'node:assert/strict'
import { test } from 'node:test'
import { AcceptLink, AddListEntry, CreateKey, SavePlan } from '@assay/contract/admin'
import { checkForm } from '@assay/contract/check-form'

test('a valid form has no errors, and unknown fields are ignored', () => {
  assert.deepEqual(checkForm(CreateKey, { name: 'build', other: 1 }), {})
  assert.deepEqual(checkForm(CreateKey, { name: 'build', expires_at: null, is_test: true }), {})
})

test('each invalid field has a message that says what to enter', () => {
  assert.deepEqual(checkForm(AcceptLink, { token: 't', name: 'Ada', email: 'ada', password: 'short' }), {
    email: ['Enter an address such as ada@example.com.'],
    password: ['Enter at least 12 characters.'],
  })
  assert.deepEqual(checkForm(AcceptLink, {}), {
    token: ['Required.'],
    name: ['Required.'],
    email: ['Required.'],
    password: ['Required.'],
  })
  assert.deepEqual(checkForm(SavePlan, { credits_per_period: -1, rate: '60/1m' }), {
    credits_per_period: ['Enter 0 or more.'],
  })
  const entry = { list: 'grey', matches: 'sha256', value: 'x', reason: 'y' }
  assert.deepEqual(checkForm(AddListEntry, entry), { list: ['Choose one of allow, block.'] })
  assert.deepEqual(checkForm(CreateKey, { name: 'a\u0000b' }), {
    name: ['Remove the NUL character.'],
  })
})

test('an empty form lacks every required field', () => {
  for (const form of [{}, Object.create(null)]) assert.deepEqual(checkForm(CreateKey, form), { name: ['Required.'] })
})

import assert from 'node:assert/strict'
import { test } from 'node:test'
import { hashPassword, isPasswordCorrect } from '../../src/domain/console/credentials.ts'

test('a password is stored as argon2id with a salt of its own, and only it is right', async () => {
  const [one, two] = [await hashPassword('correct horse'), await hashPassword('correct horse')]
  assert.match(one, /^\$argon2id\$v=19\$m=19456,t=2,p=1\$[\w+/]{22}\$[\w+/]{43}$/)
  assert.notEqual(one, two)
  assert(!one.includes('correct'))
  assert.equal(await isPasswordCorrect('correct horse', one), true)
  for (const wrong of ['', 'correct hors', 'Correct horse', 'correct horse\u0000', 'correct horse ']) {
    assert.equal(await isPasswordCorrect(wrong, one), false, wrong)
  }
})

test('a hash that other software made is understood, with its own cost', async () => {
  // argon2 "correct horse" of the reference implementation: -id -t 1 -k 1024 -p 1 -l 16, salt "saltsaltsalt".
  const other = '$argon2id$v=19$m=1024,t=1,p=1$c2FsdHNhbHRzYWx0$grPT2ZF1KBwsDoQLwp1NMg'
  assert.equal(await isPasswordCorrect('correct horse', other), true)
  assert.equal(await isPasswordCorrect('correct house', other), false)
})

test('what is no hash fits no password', async () => {
  for (const stored of [
    '',
    'correct horse',
    '$argon2i$v=19$m=1024,t=1,p=1$c2FsdA$AAAA',
    '$argon2id$v=16$m=1,t=1,p=1$a$b',
  ]) {
    assert.equal(await isPasswordCorrect('correct horse', stored), false, stored)
  }
})

import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import { after, describe, test } from 'node:test'
import { makePasswords } from '../../src/domain/console/authentication.ts'
import { isCommonPassword } from '../../src/domain/console/invitations.ts'
import type { Problem } from '../../src/domain/problem.ts'
import { makePasswordHashing } from '../../src/runtime/password-hashing.ts'

describe('passwords', () => {
  const hashing = makePasswordHashing({ maxWaiting: 4 })
  const passwords = makePasswords(hashing)
  after(() => hashing.close())

  test('a password is stored as argon2id with a salt of its own, and only it is right', async () => {
    const [one, two] = [await passwords.hash('correct horse'), await passwords.hash('correct horse')]
    assert.match(one, /^\$argon2id\$v=19\$m=19456,t=2,p=1\$[\w+/]{22}\$[\w+/]{43}$/)
    assert.notEqual(one, two)
    assert(!one.includes('correct'))
    assert.equal(await passwords.isCorrect('correct horse', one), true)
    for (const wrong of ['', 'correct hors', 'Correct horse', 'correct horse\u0000', 'correct horse ']) {
      assert.equal(await passwords.isCorrect(wrong, one), false, wrong)
    }
  })

  test('a hash that other software made is understood, with its own cost', async () => {
    // argon2 "correct horse" of the reference implementation: -id -t 1 -k 1024 -p 1 -l 16, salt "saltsaltsalt".
    const other = '$argon2id$v=19$m=1024,t=1,p=1$c2FsdHNhbHRzYWx0$grPT2ZF1KBwsDoQLwp1NMg'
    assert.equal(await passwords.isCorrect('correct horse', other), true)
    assert.equal(await passwords.isCorrect('correct house', other), false)
  })

  test('what is no hash fits no password', async () => {
    for (const stored of [
      '',
      'correct horse',
      '$argon2i$v=19$m=1024,t=1,p=1$c2FsdA$AAAA',
      '$argon2id$v=16$m=1,t=1,p=1$a$b',
    ]) {
      assert.equal(await passwords.isCorrect('correct horse', stored), false, stored)
    }
  })

  test('beyond the queue a check is refused with a time to come back; a known person overtakes the others', async () => {
    const stored = await passwords.hash('correct horse')
    const order: string[] = []
    const check = async (name: string, isUrgent: boolean) => {
      const result = await passwords.isCorrect('wrong', stored, { isUrgent }).catch((error: Problem) => error.refusal)
      order.push(name)
      return result
    }
    // The first password is checked at once and four wait, so the sixth is refused.
    const strangers = Array.from({ length: 6 }, (_, n) => check(`stranger ${n}`, false))
    const known = check('known', true)
    const refused = await strangers[5]
    assert(typeof refused === 'object' && refused.kind === 'overloaded' && refused.retryAfterSeconds >= 1)
    assert.deepEqual(await Promise.all([...strangers.slice(0, 5), known]), Array(6).fill(false))
    assert.deepEqual(order.slice(0, 3), ['stranger 5', 'stranger 0', 'known'])
    assert.equal(hashing.countWaiting(), 0)
  })

  test('a password that comes while the idle thread ends is hashed by another thread', async (t) => {
    t.mock.timers.enable({ apis: ['setTimeout'] })
    const own = makePasswordHashing()
    const { hash } = makePasswords(own)
    await hash('correct horse')
    t.mock.timers.tick(60_000)
    assert.match(await hash('correct horse'), /^\$argon2id/)
    await own.close()
  })

  test('closing rejects the passwords that run and wait, and those that come later', async () => {
    const own = makePasswordHashing()
    const { hash } = makePasswords(own)
    const rejections = ['runs', 'waits', 'waits as well'].map((password) =>
      assert.rejects(hash(password), /is stopping/),
    )
    await own.close()
    await Promise.all(rejections)
    await assert.rejects(hash('late'), /is stopping/)
  })

  test('hashing leaves the thread pool of Node to scans', () => {
    // With a pool of one thread, a read that is asked for after many hashes ends before them, or after all of them.
    const script = `
      import { readFile } from 'node:fs/promises'
      import { makePasswords } from './src/domain/console/authentication.ts'
      import { makePasswordHashing } from './src/runtime/password-hashing.ts'
      const hashing = makePasswordHashing()
      const { hash } = makePasswords(hashing)
      const order = []
      const hashes = Array.from({ length: 20 }, () => hash('correct horse').then(() => order.push('hash')))
      const read = readFile('package.json').then(() => order.push('read'))
      await Promise.all([...hashes, read])
      await hashing.close()
      console.log(order.at(-1))`
    const out = execFileSync(process.execPath, ['--input-type=module-typescript', '--eval', script], {
      cwd: new URL('../../', import.meta.url),
      env: { ...process.env, UV_THREADPOOL_SIZE: '1' },
      encoding: 'utf8',
    })
    assert.equal(out.trim(), 'hash')
  })
})

test('passwords that guessers try first are common, and ordinary ones are not', () => {
  const person = { email: 'ada.lovelace@example.com', name: 'Ada Lovelace' }
  for (const common of [
    'password1234',
    'Password2024!',
    'P@ssw0rd12345',
    'passwordpassword',
    'qwertyuiop123',
    '123456789012',
    'aaaaaaaaaaaaaaaa',
    'abcabcabcabcabc',
    'abcdefghijkl',
    'Administrator1!',
    'letmein-letmein',
    'iloveyou2025',
    'AdaLovelace1815',
    'ada.lovelace@example.com',
    'Summer2026!Summer',
  ]) {
    assert.equal(isCommonPassword(common, person), true, common)
  }
  for (const good of [
    'correct horse battery staple',
    'a different long password',
    'x7#Kq9$2mP!z',
    'vd8Zt4QpLw0nRk',
    'Приветствую всех гостей',
    '8302746192835521',
    'my dog eats blue socks',
  ]) {
    assert.equal(isCommonPassword(good, person), false, good)
  }
})

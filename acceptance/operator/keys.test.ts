import assert from 'node:assert/strict'
import { before, test } from 'node:test'
import { sendTo } from '../support/http.ts'
import { runProgram } from '../support/run-program.ts'
import { getSharedService } from '../support/shared-service.ts'
import { waitUntil } from '../support/wait-until.ts'

const service = getSharedService()
type Key = { restrictions: object } & {
  id: string
  account_id: string
  name: string
  prefix: string
  state: string
  api_key: string
} & {
  last_used_at: string | null
  expires_at: string | null
  revoked_at: string | null
}
let account = ''
let firstKey = ''
before(async () => {
  const created = await service.createAccount()
  account = created.id
  firstKey = created.api_key
})

const createKey = (...options: string[]) =>
  service.operate('keys', 'create', '--account', account, ...options) as Promise<Key>
const listKeys = () => service.operate('keys', 'list', '--account', account) as Promise<Key[]>
const ping = async (key: string) =>
  (await sendTo(service.url, { method: 'GET', path: '/v1/ping', headers: { 'x-api-key': key } })).status

test('a new key works at once, beside the first one, and is listed without the key itself', async () => {
  const key = await createKey('--name', 'build server')
  assert.equal(key.account_id, account)
  assert.equal(key.name, 'build server')
  assert(key.api_key.startsWith(key.prefix))
  assert.equal(await ping(key.api_key), 200)
  assert.equal(await ping(firstKey), 200)

  const listed = await listKeys()
  assert.deepEqual(listed.map(({ name, state }) => `${name} ${state}`).sort(), [
    'build server active',
    'default active',
  ])
  assert(!JSON.stringify(listed).includes(key.api_key))
  assert(!JSON.stringify(listed).includes(firstKey))
})

test('a revoked key is refused by the very next request, and the others go on', async () => {
  const key = await createKey('--name', 'lost')
  assert.equal(await ping(key.api_key), 200)
  assert.deepEqual(await service.operate('keys', 'revoke', key.id), { id: key.id, revoked: true })
  assert.equal(await ping(key.api_key), 401)
  assert.equal(await ping(firstKey), 200)
  const found = (await listKeys()).find(({ id }) => id === key.id)
  assert.equal(found?.state, 'revoked')
  assert(found?.revoked_at)
})

test('a key is restricted when it is created or later, and again to nothing', async () => {
  const key = await createKey('--allow', 'scan,read', '--kinds', 'malware', '--networks', '192.0.2.0/24,2001:DB8::1')
  const networks = ['192.0.2.0/24', '2001:db8::1/128']
  assert.deepEqual(key.restrictions, { allow: ['read', 'scan'], kinds: ['malware'], networks })
  assert.equal(await ping(key.api_key), 403)
  // Restrictions that are not named stay.
  const changed = (await service.operate('keys', 'set', key.id, '--networks', 'none')) as Key
  assert.deepEqual(changed.restrictions, { allow: ['read', 'scan'], kinds: ['malware'], networks: null })
  assert.equal(await ping(key.api_key), 200)
  for (const [option = '', value = ''] of [
    ['--allow', 'write'],
    ['--kinds', 'malware,text'],
    ['--networks', '10.0.0.0/33'],
  ])
    assert.equal((await runProgram(service.settings, 'keys', 'set', key.id, option, value)).code, 2, option)
})

test('a key works until it expires and no longer', async () => {
  const expires = new Date(Date.now() + 2500)
  const key = await createKey('--expires', expires.toISOString())
  assert.equal(key.expires_at, expires.toISOString())
  if (Date.now() < expires.getTime() - 500) assert.equal(await ping(key.api_key), 200)
  await waitUntil('the key to expire', async () => (await ping(key.api_key)) === 401)
  assert(Date.now() >= expires.getTime())
  assert.equal((await listKeys()).find(({ id }) => id === key.id)?.state, 'expired')
  assert.equal(await ping(firstKey), 200)
})

test('the list tells when a key was last used', async () => {
  const key = await createKey('--name', 'fresh')
  assert.equal(key.last_used_at, null)
  await ping(key.api_key)
  await waitUntil('the time of its use', async () => {
    const found = (await listKeys()).find(({ id }) => id === key.id)
    return found?.last_used_at !== null
  })
})

test('without an account the list has the keys of all', async () => {
  const all = (await service.operate('keys', 'list')) as Key[]
  assert(all.some(({ account_id }) => account_id === account))
  assert(new Set(all.map(({ account_id }) => account_id)).size > 1)
})

import assert from 'node:assert/strict'
import { before, test } from 'node:test'
import { sendTo } from '../support/http.ts'
import { runProgram } from '../support/run-program.ts'
import { getSharedService } from '../support/shared-service.ts'
import { waitUntil } from '../support/wait-until.ts'

const service = getSharedService()
type Account = Record<string, string | number | null>
const operate = (...args: string[]) => service.operate(...args) as Promise<Account>

let created: Account
let id = ''
before(async () => {
  const options = ['--plan', 'free', '--credits', '25', '--rate', '70/2m', '--expires', '2099-01-31T12:00:00Z']
  created = await operate('accounts', 'create', '--name', 'Ännchen & Co', ...options)
  id = String(created.id)
})

async function ping() {
  const answer = await sendTo(service.url, {
    method: 'GET',
    path: '/v1/ping',
    headers: { 'x-api-key': String(created.api_key) },
  })
  return answer
}

test('create gives an account as ordered, with a key and a secret that nothing shows again', async () => {
  const { api_key, webhook_secret, period_start_date, period_end_date, created_date, ...rest } = created
  assert.deepEqual(rest, {
    id,
    name: 'Ännchen & Co',
    plan: 'free',
    credits_per_period: 25,
    credit_limit: 25,
    credit_remaining: 25,
    rate: '70/2m',
    sexy: 'threat',
    download_hosts: null,
    revision_url: null,
    verdict_policy: null,
    expires_at: '2099-01-31T12:00:00.000Z',
    state: 'active',
    suspended_reason: null,
  })
  for (const date of [period_start_date, period_end_date, created_date]) assert(!Number.isNaN(Date.parse(String(date))))
  const answer = await ping()
  assert.equal(answer.status, 200)
  assert.equal(answer.headers['x-api-credit-limit'], '25')
  assert.equal(answer.headers['x-rate-limit-limit'], '2m')

  const shown = JSON.stringify([await operate('accounts', 'show', id), await operate('keys', 'list', '--account', id)])
  assert(!shown.includes(String(api_key)))
  assert(!shown.includes(String(webhook_secret)))
})

test('a policy of an account without engines that vote is kept, with a warning that it has no effect', async () => {
  const update = (policy: string) =>
    runProgram(service.settings, 'accounts', 'update', id, '--policy', policy, '--json')
  const { out, err } = await update('quorum 2')
  assert.equal(JSON.parse(out).verdict_policy, 'quorum 2')
  assert.match(err, /The policy has no effect while assay\.toml has no \[\[engines\]\]/)
  const restored = await update('none')
  assert.deepEqual([JSON.parse(restored.out).verdict_policy, restored.err], [null, ''])
})

test('show and list give the same account, the id in any letter case', async () => {
  const { api_key: _key, webhook_secret: _secret, ...known } = created
  assert.deepEqual(await operate('accounts', 'show', id.toUpperCase()), known)
  const all = (await service.operate('accounts', 'list')) as Account[]
  assert.deepEqual(
    all.find((account) => account.id === id),
    known,
  )
})

test('a new allowance and rate count at once', async () => {
  const changed = await operate('accounts', 'update', id, '--credits', '40', '--rate', '80/1m', '--name', 'Anna')
  assert.equal(changed.name, 'Anna')
  assert.equal(changed.credit_limit, 40)
  assert.equal(changed.rate, '80/1m')
  const answer = await ping()
  assert.equal(answer.headers['x-api-credit-limit'], '40')
  assert.equal(answer.headers['x-api-credit-remaining'], '40')
})

test('none gives back what the plan says', async () => {
  const changed = await operate('accounts', 'update', id, '--credits', 'none', '--rate', 'none', '--expires', 'none')
  assert.equal(changed.credits_per_period, 1000)
  assert.equal(changed.rate, '60/1m')
  assert.equal(changed.expires_at, null)
  const moved = await operate('accounts', 'update', id, '--plan', 'standard')
  assert.equal(moved.plan, 'standard')
  assert.equal(moved.credit_limit, 100_000)
  assert.equal((await ping()).headers['x-api-credit-limit'], '100000')
})

test('a suspended account is refused at once and let in again when it is resumed', async () => {
  assert.equal((await operate('accounts', 'suspend', id)).state, 'suspended')
  assert.equal((await ping()).status, 401)
  assert.equal((await operate('accounts', 'suspend', id, '--reason', 'The invoice is not paid.')).state, 'suspended')
  assert.equal((await operate('accounts', 'resume', id)).state, 'active')
  assert.equal((await ping()).status, 200)
})

test('an account is refused from the moment its subscription ends', async () => {
  const soon = new Date(Date.now() + 2500)
  const changed = await operate('accounts', 'update', id, '--expires', soon.toISOString())
  assert.equal(changed.expires_at, soon.toISOString())
  if (Date.now() < soon.getTime() - 500) assert.equal((await ping()).status, 200)
  await waitUntil('the end of the subscription', async () => (await ping()).status === 401)
  assert(Date.now() >= soon.getTime())
  assert.equal((await operate('accounts', 'show', id)).state, 'expired')
  await operate('accounts', 'update', id, '--expires', 'none')
  assert.equal((await ping()).status, 200)
})

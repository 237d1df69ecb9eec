import assert from 'node:assert/strict'
import { before, describe, test } from 'node:test'
import { sendTo } from '../support/http.ts'
import { runProgram } from '../support/run-program.ts'
import { getSharedService } from '../support/shared-service.ts'

const service = getSharedService()
type Plan = { name: string; credits_per_period: number; rate: string }
type Account = { id: string; credit_limit: number; credit_remaining: number; rate: string }
type Entry = { amount: number; balance: number; kind: string; note: string | null; at: string }

describe('plans', () => {
  const name = `gold-${process.pid}`
  const listPlans = () => service.operate('plans', 'list') as Promise<Plan[]>

  test('there are plans from the start', async () => {
    const names = (await listPlans()).map((plan) => plan.name)
    for (const plan of ['free', 'standard', 'unlimited']) assert(names.includes(plan), plan)
  })

  test('a plan can be saved, changed, used and, when no account is on it, deleted', async () => {
    const save = (credits: string, rate: string) =>
      service.operate('plans', 'save', name, '--credits', credits, '--rate', rate)
    const first = { name, credits_per_period: 5, rate: '10/1s', account_rate: null, max_keys: null }
    assert.deepEqual(await save('5', '10/1s'), first)
    assert.deepEqual(
      (await listPlans()).find((plan) => plan.name === name),
      first,
    )

    const account = (await service.operate('accounts', 'create', '--name', 'x', '--plan', name)) as Account
    assert.equal(account.credit_limit, 5)
    assert.equal(account.rate, '10/1s')

    await save('7', '20/1s')
    const later = (await service.operate('accounts', 'show', account.id)) as Account
    assert.equal(later.rate, '20/1s', 'a rate counts at once')
    assert.equal(later.credit_limit, 5, 'credits count from the next period')

    const limited = ['--account-rate', '30/1s', '--max-keys', '1']
    const changed = await service.operate('plans', 'save', name, '--credits', '7', '--rate', '20/1s', ...limited)
    assert.deepEqual(changed, { name, credits_per_period: 7, rate: '20/1s', account_rate: '30/1s', max_keys: 1 })
    const tooMany = await runProgram(service.settings, 'keys', 'create', '--account', account.id, '--json')
    assert.equal(tooMany.code, 1)
    assert.match(JSON.parse(tooMany.out).error, /The plan of the account allows one active key/)

    const refused = await runProgram(service.settings, 'plans', 'delete', name, '--json')
    assert.equal(refused.code, 1)
    assert.match(JSON.parse(refused.out).error, /Move them first/)
    await service.operate('accounts', 'update', account.id, '--plan', 'free')
    assert.deepEqual(await service.operate('plans', 'delete', name), { name, deleted: true })
    assert(!(await listPlans()).some((plan) => plan.name === name))
  })
})

describe('credits', () => {
  let id = ''
  let key = ''
  before(async () => {
    const created = await service.createAccount('--credits', '10')
    id = created.id
    key = created.api_key
  })
  const show = () => service.operate('accounts', 'show', id) as Promise<Account>
  const readLedger = (...more: string[]) =>
    service.operate('credits', 'ledger', '--account', id, ...more) as Promise<Entry[]>

  test('a grant raises what the account has at once, and stands in the ledger with its note', async () => {
    const granted = (await service.operate(
      'credits',
      'grant',
      '--account',
      id,
      '--amount',
      '15',
      '--note',
      'a present',
    )) as Account
    assert.deepEqual([granted.credit_limit, granted.credit_remaining], [25, 25])
    const [newest] = await readLedger('--limit', '1')
    assert.deepEqual(
      { kind: newest?.kind, amount: newest?.amount, balance: newest?.balance, note: newest?.note },
      { kind: 'grant', amount: 15, balance: 25, note: 'a present' },
    )
    const answer = await sendTo(service.url, { method: 'GET', path: '/v1/me', headers: { 'x-api-key': key } })
    assert.equal(JSON.parse(answer.text).credit_remaining, 25)
  })

  test('the ledger sums to the balance, row by row, whatever changed it', async () => {
    await service.operate('accounts', 'update', id, '--credits', '3')
    await service.operate('credits', 'grant', '--account', id, '--amount', '4')
    await service.operate('accounts', 'update', id, '--credits', '50')
    const entries = await readLedger()
    assert(entries.length >= 4)
    let balance = 0
    for (const entry of entries.toReversed()) {
      balance += entry.amount
      assert.equal(entry.balance, balance, JSON.stringify(entry))
    }
    assert.equal((await show()).credit_remaining, balance)
  })

  test('an account without credits is refused, and served again after a grant', async () => {
    const ping = async () =>
      (await sendTo(service.url, { method: 'GET', path: '/v1/ping', headers: { 'x-api-key': empty.api_key } })).status
    const empty = await service.createAccount('--credits', '0')
    assert.equal(await ping(), 403)
    await service.operate('credits', 'grant', '--account', empty.id, '--amount', '1')
    assert.equal(await ping(), 200)
  })

  test('credits that no 32-bit number holds are refused', async () => {
    const amounts = ['--amount', '2000000000']
    await service.operate('credits', 'grant', '--account', id, ...amounts)
    const refused = await runProgram(service.settings, 'credits', 'grant', '--account', id, ...amounts, '--json')
    assert.equal(refused.code, 1)
    assert.match(JSON.parse(refused.out).error, /2147483647/)
  })
})

import assert from 'node:assert/strict'
import { before, describe, test } from 'node:test'
import { headers, listDeliveriesOperation, operations } from '@assay/contract'
import { openAccount } from '../support/console.ts'
import { sendTo } from '../support/http.ts'
import { nobodysId } from '../support/operation.ts'
import { assertProblem } from '../support/problems.ts'
import { getSharedService } from '../support/shared-service.ts'

const { url, admin } = getSharedService()
const here = ['127.0.0.0/8', '::1/128']
const free = 'General.Me General.Ping'
const [read, scan, submit] = ['GetResult', 'ScanFile ScanUrl', 'SubmitFile SubmitUrl']

/** The operations of a kind, by the ends of their names. */
const toIds = (kind: 'Malware' | 'Nsfw.Images', ends: string) => ends.split(' ').map((end) => `${kind}.${end}`)
const ofBoth = (ends: string) => [...toIds('Malware', ends), ...toIds('Nsfw.Images', ends)]

/** Restrictions of a key, and the operations that it may use beside `free`. */
const cases: [name: string, restrictions: object, allowed: string[]][] = [
  ['no restrictions', {}, [...ofBoth(`${read} ${scan} ${submit}`), 'Webhooks.ListDeliveries']],
  ['read', { allow: ['read'] }, [...ofBoth(read), 'Webhooks.ListDeliveries']],
  ['scan', { allow: ['scan'] }, ofBoth(scan)],
  ['submit', { allow: ['submit'] }, ofBoth(submit)],
  ['scan and read', { allow: ['scan', 'read'] }, [...ofBoth(`${scan} ${read}`), 'Webhooks.ListDeliveries']],
  ['malware', { kinds: ['malware'] }, toIds('Malware', `${read} ${scan} ${submit}`)],
  ['images', { kinds: ['nsfw_image'] }, toIds('Nsfw.Images', `${read} ${scan} ${submit}`)],
  ['scan, malware, here', { allow: ['scan'], kinds: ['malware'], networks: here }, toIds('Malware', scan)],
]

const all = [...operations.map(({ id, method, path }) => ({ id, method, path })), listDeliveriesOperation]

describe('a key that is restricted', () => {
  let account: Awaited<ReturnType<typeof openAccount>>
  before(async () => {
    account = await openAccount(admin, { plan: 'standard', credits: 1000, rate: '1000/1d' })
  })
  const createKey = async (name: string, restrictions: object) =>
    (await admin.ask<{ api_key: string }>(account.owner, 'POST', '/keys', { name, ...restrictions })).api_key
  /** Scans have a media type that is refused after admission, so that nothing is scanned. */
  const send = (key: string, { method, path }: (typeof all)[number]) =>
    sendTo(url, {
      method,
      path: path.replace('{id}', nobodysId),
      headers: { [headers.apiKey]: key, ...(method === 'POST' && { 'content-type': 'text/plain' }) },
      ...(method === 'POST' && { body: 'x' }),
    })

  for (const [name, restrictions, allowed] of cases) {
    test(`to ${name} may do that, and gets 403 with a reason for everything else`, async () => {
      const key = await createKey(name, restrictions)
      for (const [index, operation] of all.entries()) {
        const answer = await send(key, operation)
        const isAllowed = [...allowed, ...free.split(' ')].includes(operation.id)
        if (!isAllowed) await assertProblem(answer, { status: 403, kind: 'key-restricted' }, operation.id)
        else assert([200, 415, 422].includes(answer.status), `${operation.id}: ${answer.status} ${answer.text}`)
        // A refused request counts like every other.
        assert.equal(answer.headers['x-rate-limit-remaining'], String(999 - index))
        assert.equal(answer.headers['x-api-credit-remaining'], '1000')
      }
    })
  }

  test('to other networks may do nothing', async () => {
    const key = await createKey('elsewhere', { networks: ['192.0.2.0/24', '2001:db8::/32'] })
    for (const operation of all)
      await assertProblem(await send(key, operation), { status: 403, kind: 'key-restricted' }, operation.id)
  })

  test('gets the reason before it learns that no credits are left', async () => {
    const poor = await openAccount(admin, { plan: 'standard', credits: 0 })
    const body = { name: 'poor', allow: ['read'] }
    const { api_key: key } = await admin.ask<{ api_key: string }>(poor.owner, 'POST', '/keys', body)
    const ask = (id: string) => send(key, all.find((operation) => operation.id === id) ?? listDeliveriesOperation)
    await assertProblem(await ask('Malware.ScanFile'), { status: 403, kind: 'key-restricted' })
    const answer = await ask('Malware.GetResult')
    assert.deepEqual([answer.status, answer.text], [403, ''])
  })
})

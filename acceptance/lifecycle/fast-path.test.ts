import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { suite, test } from 'node:test'
import { headers } from '@assay/contract'
import { images } from '../support/forms.ts'
import type { Answer } from '../support/http.ts'
import { getSharedService } from '../support/shared-service.ts'
import { makeCaller, toId, toResult } from '../support/submitting.ts'

const service = getSharedService()
const sexyCard = new URL('../../docs/test-images/sexy.png', import.meta.url)

/**
 * After a request, an account with plenty of credits takes the fast path for a moment: small files are scanned before they
 * are charged. Callers must see no difference.
 */
suite('a caller on the fast path', () => {
  for (const { name, kind, how, newContent } of [
    { name: 'scan', kind: 'malware', how: 'scan', newContent: (text: string) => text },
    { name: 'scan of 100 KB', kind: 'malware', how: 'scan', newContent: (text: string) => text.padEnd(100_000, '.') },
    { name: 'scan of 1 MB', kind: 'malware', how: 'scan', newContent: (text: string) => text.padEnd(2 ** 20, '.') },
    { name: 'submit', kind: 'malware', how: 'submit', newContent: (text: string) => text },
    { name: 'scan of a picture', kind: 'nsfw/images', how: 'scan', newContent: () => images['one.png'] },
  ] as const) {
    test(`pays one credit and one request for each ${name}`, async () => {
      const { caller } = await openAccount()
      const before = readLeft(await caller.sendFile(kind, how, newContent(`${how} first`)))
      for (let n = 1; n <= 5; n++) {
        const left = readLeft(await caller.sendFile(kind, how, newContent(`${how} ${n}`)))
        assert.deepEqual(left, { credits: before.credits - n, requests: before.requests - n })
      }
    })

    test(`is not charged for a ${name} that is refused, but its request counts`, async () => {
      const { caller } = await openAccount()
      const before = readLeft(await caller.sendFile(kind, how, newContent(`${how} whole`)))
      const refused = await caller.sendFile(kind, how, '')
      assert.equal(refused.status, 422, refused.text)
      assert.deepEqual(readLeft(refused), { credits: before.credits, requests: before.requests - 1 })
    })

    test(`whose key is revoked is refused the next ${name}`, async () => {
      const { caller, revoke, countScans } = await openAccount()
      await caller.sendFile(kind, how, newContent(`${how} before`))
      assert.equal(await countScans(), 1)
      await revoke()
      const answer = await caller.sendFile(kind, how, newContent(`${how} after`))
      assert.equal(answer.status, 401, answer.text)
      assert.equal(await countScans(), 1)
    })
  }

  test('gets the verdict on a sexy image that the account has set at that moment, and pays once', async () => {
    const { caller, id } = await openAccount()
    const scan = () => caller.sendFile('nsfw/images', 'scan', readFileSync(sexyCard))
    const before = await scan()
    assert.equal(toResult(before, 201).status, 'threat')
    // Over HTTP, because an operator command takes longer than the fast path lasts.
    await service.admin.ask(service.admin.token, 'PATCH', `/operator/accounts/${id}`, { flags_sexy: false })
    const after = await scan()
    assert.equal(toResult(after, 201).status, 'clean')
    const left = readLeft(before)
    assert.deepEqual(readLeft(after), { credits: left.credits - 1, requests: left.requests - 1 })
  })

  test('is charged once for a submit that it repeats with an idempotency key, and both requests count', async () => {
    const { caller } = await openAccount()
    const before = readLeft(await caller.sendFile('malware', 'submit', 'something else'))
    const submit = () => caller.sendFile('malware', 'submit', 'the same', {}, { [headers.idempotencyKey]: 'only-once' })
    const [first, second] = [await submit(), await submit()]
    assert.equal(toId(second), toId(first))
    assert.deepEqual(readLeft(second), { credits: before.credits - 1, requests: before.requests - 2 })
    const other = await caller.sendFile('malware', 'submit', 'other', {}, { [headers.idempotencyKey]: 'only-once' })
    assert.equal(other.status, 422, other.text)
  })
})

async function openAccount() {
  const { api_key, id } = await service.createAccount('--rate', '5000/1d')
  const caller = makeCaller(service.url, api_key)
  const readLedger = () => service.operate('credits', 'ledger', '--account', id) as Promise<{ kind: string }[]>
  return {
    caller,
    id,
    async revoke() {
      const [key] = (await service.operate('keys', 'list', '--account', id)) as { id: string }[]
      // Requests go on while the key is revoked, so that the fast path is as recent as it can be.
      const revoked = service.operate('keys', 'revoke', key?.id ?? '')
      for (let isDone = false; !isDone; ) {
        isDone = await Promise.race([
          revoked.then(() => true),
          caller.readSpent().then(
            () => false,
            () => false,
          ),
        ])
      }
    },
    countScans: async () => (await readLedger()).filter(({ kind }) => kind === 'debit').length,
  }
}

const readLeft = ({ headers: found }: Answer) => ({
  credits: Number(found[headers.creditRemaining.toLowerCase()]),
  requests: Number(found[headers.rateRemaining.toLowerCase()]),
})

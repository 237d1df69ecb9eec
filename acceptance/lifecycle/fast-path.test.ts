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
 * An account with plenty left is trusted for a moment after each request: small files are worked on before they are
 * counted. Nobody must be able to tell.
 */
suite('a caller with plenty left', () => {
  for (const { name, kind, how, newContent } of [
    { name: 'scan', kind: 'malware', how: 'scan', newContent: (text: string) => text },
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

    test(`is charged nothing for a ${name} that is refused, and the request counts`, async () => {
      const { caller } = await openAccount()
      const before = readLeft(await caller.sendFile(kind, how, newContent(`${how} whole`)))
      const refused = await caller.sendFile(kind, how, '')
      assert.equal(refused.status, 422, refused.text)
      assert.deepEqual(readLeft(refused), { credits: before.credits, requests: before.requests - 1 })
    })

    test(`whose key is revoked gets no ${name} any more, at once`, async () => {
      const { caller, revoke, countScans } = await openAccount()
      await caller.sendFile(kind, how, newContent(`${how} before`))
      assert.equal(await countScans(), 1)
      await revoke()
      const answer = await caller.sendFile(kind, how, newContent(`${how} after`))
      assert.equal(answer.status, 401, answer.text)
      assert.equal(await countScans(), 1)
    })
  }

  test('has what is sexy judged by the setting of that moment, and pays for it once', async () => {
    const { caller, id } = await openAccount()
    const look = () => caller.sendFile('nsfw/images', 'scan', readFileSync(sexyCard))
    const before = await look()
    assert.equal(toResult(before, 201).status, 'threat')
    // Over HTTP, because the operator's program takes longer than the trust lasts.
    await service.admin.ask(service.admin.token, 'PATCH', `/operator/accounts/${id}`, { flags_sexy: false })
    const after = await look()
    assert.equal(toResult(after, 201).status, 'clean')
    const left = readLeft(before)
    assert.deepEqual(readLeft(after), { credits: left.credits - 1, requests: left.requests - 1 })
  })

  test('has a submit repeated by its idempotency key charged and done once, and counted twice', async () => {
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
  const { api_key, id } = await service.createAccount('--rate', '5000/1m')
  const caller = makeCaller(service.url, api_key)
  const readLedger = () => service.operate('credits', 'ledger', '--account', id) as Promise<{ kind: string }[]>
  return {
    caller,
    id,
    async revoke() {
      const [key] = (await service.operate('keys', 'list', '--account', id)) as { id: string }[]
      // Asked again, so that the trust is as fresh as it can be.
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

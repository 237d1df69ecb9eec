import assert from 'node:assert/strict'
import { test } from 'node:test'
import { nobodysId, type Subject } from './operation.ts'

/** Rules of the operations that return a result. */
export function testResultRules(subject: Subject) {
  const { operation, send } = subject
  const sendId = (id: string) => send({ path: operation.path.replace('{id}', id) })

  test('422: whatever is not a job of the account and kind gets one and the same answer', async () => {
    const ids = [
      nobodysId,
      nobodysId.toUpperCase(),
      'ffffffff-ffff-ffff-ffff-ffffffffffff',
      '1',
      'scan',
      'a'.repeat(2000),
    ]
    const odd = [
      '%20',
      '%27%20or%201=1--',
      '00000000000040008000000000000000',
      `%7B${nobodysId}%7D`,
      `${nobodysId}0`,
      'é',
    ]
    for (const id of [...ids, ...odd.map(encodeOnce)]) {
      const answer = await sendId(id)
      await subject.assertInvalid(answer, ['id'], id)
      assert.deepEqual(JSON.parse(answer.text).errors, { id: ['The job could not be found.'] })
    }
  })

  test('a query does not change which job is meant, and stays out of the problem', async () => {
    await subject.assertInvalid(await sendId(`${nobodysId}?id=1&secret=2`), ['id'])
  })

  test('what the body and the media type of a GET say is no matter', async () => {
    const headers = { 'content-type': 'text/plain', 'content-length': 3 }
    const path = operation.path.replace('{id}', nobodysId)
    await subject.assertInvalid(await send({ path, headers, body: 'abc' }), ['id'])
  })
}

/** Escapes text for a request line and keeps parts that are escaped already. */
const encodeOnce = (text: string) => encodeURI(text).replaceAll('%25', '%')

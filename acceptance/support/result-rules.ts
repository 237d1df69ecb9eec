import assert from 'node:assert/strict'
import { test } from 'node:test'
import { nobodysId, type Subject } from './operation.ts'

/** Rules for fetching a result. */
export function testResultRules(subject: Subject) {
  const { operation, send } = subject
  const sendId = (id: string) => send({ path: operation.path.replace('{id}', id) })

  test('422: an id that is not a job of the account and kind always gets the same response', async () => {
    const ids = `${nobodysId} ${nobodysId.toUpperCase()} ffffffff-ffff-ffff-ffff-ffffffffffff 1 scan ${'a'.repeat(2000)}
      %20 %27%20or%201=1-- 00000000000040008000000000000000 %7B${nobodysId}%7D ${nobodysId}0 é`
    for (const id of ids.split(/\s+/).map(encodeOnce)) {
      const answer = await sendId(id)
      await subject.assertInvalid(answer, ['id'], id)
      assert.deepEqual(JSON.parse(answer.text).errors, { id: ['The job could not be found.'] })
    }
  })

  test('a query does not change which job is meant, and stays out of the problem', async () => {
    await subject.assertInvalid(await sendId(`${nobodysId}?id=1&secret=2`), ['id'])
  })

  test('the body and the media type of a GET are ignored', async () => {
    const headers = { 'content-type': 'text/plain', 'content-length': 3 }
    const path = operation.path.replace('{id}', nobodysId)
    await subject.assertInvalid(await send({ path, headers, body: 'abc' }), ['id'])
  })
}

/** Escapes text for a request line, and leaves text that is already escaped. */
const encodeOnce = (text: string) => encodeURI(text).replaceAll('%25', '%')

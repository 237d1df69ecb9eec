import assert from 'node:assert/strict'
import type { Socket } from 'node:net'
import { describe, type TestContext, test } from 'node:test'
import { waitUntil } from '../../../../acceptance/support/wait-until.ts'
import type { ContentStore } from '../../src/domain/ports/content-store.ts'
import { newFetching } from './fetching.ts'
import { newAnswer, openBlackHole, openCountedContents, openOrigin } from './origins.ts'

describe('a caller who aborts', () => {
  const enough = new Error('enough')

  async function requireAborted(
    t: TestContext,
    given: AbortController,
    { answer, contents }: { answer(socket: Socket): void; contents?: ContentStore },
  ) {
    const origin = await openOrigin(t, answer)
    const { fetch } = newFetching(t)
    const request = { signal: given.signal, ...(contents === undefined ? {} : { contents }) }
    await assert.rejects(fetch(`http://127.0.0.2:${origin.port}/`, request), enough)
    await waitUntil('the origin sees the end', () => origin.countOpen() === 0)
    await assert.rejects(fetch(`http://127.0.0.2:${origin.port}/`, request), enough)
    assert.equal(origin.heard.length, 1, 'an aborted caller makes no request')
  }

  test('before the answer gets the reason of the abort, and no connection stays open', async (t) => {
    const given = new AbortController()
    await requireAborted(t, given, { answer: () => given.abort(enough) })
  })

  test('within the content gets the reason of the abort, and no connection stays open', async (t) => {
    const given = new AbortController()
    const { contents, countOpen } = openCountedContents(t)
    const aborting = {
      ...contents,
      newWriter() {
        const writer = contents.newWriter()
        return {
          ...writer,
          write(bytes: Buffer) {
            given.abort(enough)
            return writer.write(bytes)
          },
        }
      },
    }
    const answer = (socket: Socket) => void socket.write(newAnswer('200 OK\nContent-Length: 100', 'only this'))
    await requireAborted(t, given, { answer, contents: aborting })
    assert.equal(countOpen(), 0)
  })

  test('while it connects does not wait for the connection', async (t) => {
    const { fetch } = newFetching(t)
    const hole = await openBlackHole(t)
    const signal = AbortSignal.timeout(200)
    const calls = Array.from({ length: 8 }, () => fetch(`http://127.0.0.2:${hole}/`, { signal }))
    for (const call of await Promise.allSettled(calls)) assert.ok('reason' in call && call.reason === signal.reason)
  })
})

test('a failure of the content store is not a failed download', async (t) => {
  const origin = await openOrigin(t, (socket) => socket.end(newAnswer('200 OK\nContent-Length: 5', 'hello')))
  const { fetch } = newFetching(t)
  const { contents } = openCountedContents(t)
  let aborted = 0
  const full = Object.assign(new Error('no space left'), { code: 'ENOSPC' })
  const failing = {
    newWriter: () => ({
      ...contents.newWriter(),
      write: () => Promise.reject(full),
      async abort() {
        aborted += 1
      },
    }),
  }
  await assert.rejects(fetch(`http://127.0.0.2:${origin.port}/`, { contents: failing }), full)
  assert.equal(aborted, 1)
  await waitUntil('the origin sees the end', () => origin.countOpen() === 0)
})

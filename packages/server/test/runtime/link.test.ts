import assert from 'node:assert/strict'
import { connect, createServer, type Socket } from 'node:net'
import { after, suite, test } from 'node:test'
import { LinkClosed, openLink } from '../../src/runtime/link.ts'

type Handlers = Parameters<typeof openLink>[1]['handlers']

suite('the link between two processes', () => {
  const closers: (() => void)[] = []
  after(() => {
    for (const close of closers) close()
  })

  async function openPair(handlers: Handlers, firstId = 1) {
    const errors = {
      toWire: (error: unknown) => (error as Error).message,
      fromWire: (message: string) => new Error(message),
      newAbortReason: () => new Error('left'),
    }
    const accepted = Promise.withResolvers<Socket>()
    const server = createServer(accepted.resolve)
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
    const socket = connect((server.address() as { port: number }).port, '127.0.0.1')
    const other = await accepted.promise
    closers.push(() => {
      socket.destroy()
      other.destroy()
      server.close()
    })
    return {
      link: openLink(socket, { handlers: {}, firstId, ...errors }),
      other: openLink(other, { handlers, ...errors }),
    }
  }

  test('answers calls that run at the same time, each with its own value and bytes', async () => {
    const { link } = await openPair({
      double: (value: number, { body }) => ({
        value: value * 2,
        body: Buffer.concat([body as Buffer, body as Buffer]),
      }),
    })
    const bodies = [1, 70_000, 3_000_000].map((length, n) => Buffer.alloc(length, n + 65))
    const answers = await Promise.all(bodies.map((body, value) => link.call('double', { value, body })))
    answers.forEach(({ value, body }, n) => {
      assert.equal(value, n * 2)
      assert.ok(body?.equals(Buffer.concat([bodies[n] as Buffer, bodies[n] as Buffer])))
    })
  })

  test('starts again with the first number after the last one that a frame can hold', async () => {
    const { link } = await openPair({ echo: (value: number) => ({ value }) }, 0xfffffffe)
    const answers = await Promise.all([0, 1, 2, 3].map((value) => link.call('echo', { value })))
    assert.deepEqual(
      answers.map(({ value }) => value),
      [0, 1, 2, 3],
    )
  })

  test('passes errors on', async () => {
    const { link } = await openPair({
      fail: () => {
        throw new Error('no')
      },
    })
    await assert.rejects(link.call('fail'), { message: 'no' })
    await assert.rejects(link.call('unknown'), { message: 'There is no call unknown' })
  })

  test('passes an aborted signal on and waits for the answer', async () => {
    const begun = Promise.withResolvers<void>()
    const { link } = await openPair({
      async wait(_: null, { signal }) {
        begun.resolve()
        await new Promise((resolve) => signal.addEventListener('abort', resolve))
        return { value: 'left' }
      },
    })
    const controller = new AbortController()
    const answer = link.call('wait', {}, controller.signal)
    await begun.promise
    controller.abort()
    assert.equal((await answer).value, 'left')
  })

  test('rejects calls, and aborts the calls that it serves, when the other process ends', async () => {
    const aborted = Promise.withResolvers<unknown>()
    const begun = Promise.withResolvers<void>()
    const { link, other } = await openPair({
      async wait(_: null, { signal }) {
        signal.addEventListener('abort', () => aborted.resolve(signal.reason))
        begun.resolve()
        await new Promise(() => {})
        return undefined
      },
    })
    const answer = link.call('wait')
    await begun.promise
    link.close()
    await assert.rejects(answer, LinkClosed)
    assert.equal(((await aborted.promise) as Error).message, 'left')
    await other.closed
    await assert.rejects(other.call('anything'), LinkClosed)
  })
})

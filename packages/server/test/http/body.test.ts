import assert from 'node:assert/strict'
import { once } from 'node:events'
import { Readable } from 'node:stream'
import { describe, test } from 'node:test'
import Fastify, { type FastifyReply, type FastifyRequest } from 'fastify'
import { leaveBodiesToHandlers, readBody, runBeforeParsing } from '../../src/http/body.ts'

const reply = {} as FastifyReply
const nextTurn = () => new Promise((resolve) => setImmediate(resolve))

function newRequest() {
  const raw = Object.assign(new Readable({ read() {} }), { headers: {}, httpVersionMinor: 1 })
  return { raw, request: { raw } as unknown as FastifyRequest }
}

describe('a body', () => {
  test('that stalls for 30 seconds is rejected', async (t) => {
    t.mock.timers.enable({ apis: ['setTimeout', 'Date'] })
    t.mock.method(performance, 'now', () => Date.now())
    const { raw, request } = newRequest()
    const reading = readBody(request, reply, () => undefined)
    raw.push('x')
    await nextTurn()
    t.mock.timers.tick(30_000)
    await assert.rejects(reading, { refusal: { kind: 'request-timeout', detail: 'The body stalled for 30 seconds.' } })
  })

  test('may wait for the service for any time; afterwards silence counts again', async (t) => {
    t.mock.timers.enable({ apis: ['setTimeout', 'Date'] })
    t.mock.method(performance, 'now', () => Date.now())
    const { raw, request } = newRequest()
    const stored = Promise.withResolvers<void>()
    let chunks = 0
    const reading = readBody(request, reply, () => (chunks++ === 0 ? stored.promise : undefined))
    raw.push('x')
    await nextTurn()
    for (let second = 0; second < 100; second++) t.mock.timers.tick(1000)
    stored.resolve()
    await nextTurn()
    raw.push('y')
    await nextTurn()
    assert.equal(chunks, 2)
    t.mock.timers.tick(29_000)
    raw.push('z')
    await nextTurn()
    t.mock.timers.tick(30_000)
    await assert.rejects(reading, { refusal: { kind: 'request-timeout', detail: 'The body stalled for 30 seconds.' } })
    assert.equal(chunks, 3)
  })

  test('in many small chunks reaches its reader in few large ones, and whole', async () => {
    const { raw, request } = newRequest()
    const taken: Buffer[] = []
    const reading = readBody(request, reply, (bytes) => void taken.push(bytes))
    const sent = Array.from({ length: 10_000 }, (_, i) => String(i % 10))
    for (const byte of sent) raw.push(byte)
    raw.push('x'.repeat(5000))
    raw.push(null)
    await reading
    assert.equal(Buffer.concat(taken).toString(), `${sent.join('')}${'x'.repeat(5000)}`)
    assert.ok(taken.length < 20, `${taken.length} chunks`)
  })

  test('in small chunks is passed on without waiting for more, and an error ends it', async () => {
    const { raw, request } = newRequest()
    let text = ''
    const reading = readBody(request, reply, (bytes) => {
      text += bytes.toString()
      if (text.includes('bad')) throw new Error('no form')
    })
    for (const byte of 'all of this is bad') raw.push(byte)
    await assert.rejects(reading, /no form/)
  })

  test('that has arrived whole reaches its reader in one piece, which it may have to store first', async () => {
    const { raw, request } = newRequest()
    for (const text of ['arrived ', 'with ', 'its head']) raw.push(text)
    Object.assign(raw.headers, { 'content-length': '21' })
    const stored = Promise.withResolvers<void>()
    const taken: string[] = []
    let isOver = false
    const reading = readBody(request, reply, (bytes) => {
      taken.push(bytes.toString())
      return stored.promise
    }).then(() => {
      isOver = true
    })
    await nextTurn()
    assert.deepEqual(taken, ['arrived with its head'])
    assert.equal(isOver, false)
    stored.resolve()
    await reading
    const ended = once(raw, 'end')
    raw.push(null)
    await ended
  })

  test('that has arrived whole and is empty, or is refused by its reader, ends at once', async () => {
    const [empty, bad] = [newRequest(), newRequest()]
    bad.raw.push('bad')
    for (const { raw } of [empty, bad]) {
      raw.push(null)
      Object.assign(raw, { complete: true })
    }
    const refuse = (bytes: Buffer) => {
      throw new Error(`${bytes} is no form`)
    }
    await readBody(empty.request, reply, refuse)
    await assert.rejects(readBody(bad.request, reply, refuse), /bad is no form/)
  })

  test('in small chunks ends only when the last of them are stored', async () => {
    const { raw, request } = newRequest()
    const stored = Promise.withResolvers<void>()
    let isOver = false
    const reading = readBody(request, reply, (bytes) => (bytes.length > 1 ? stored.promise : undefined)).then(() => {
      isOver = true
    })
    for (const byte of 'nine bytes') raw.push(byte)
    raw.push(null)
    for (let turn = 0; turn < 5; turn++) await nextTurn()
    assert.equal(isOver, false)
    stored.resolve()
    await reading
  })
})

describe('a handler that runs before parsing', () => {
  async function open(handler: () => Promise<unknown>) {
    const errors: Error[] = []
    const app = Fastify()
    leaveBodiesToHandlers(app)
    app.setErrorHandler((error: Error, _request, answer) => {
      errors.push(error)
      return answer.code(418).send()
    })
    // A response that waits for a hook is not sent yet when the handler has ended.
    app.addHook('onSend', async () => void (await nextTurn()))
    app.route({ method: 'POST', url: '/', ...runBeforeParsing(handler) })
    const send = async () => (await app.inject({ method: 'POST', url: '/', payload: { a: 1 } })).statusCode
    return { errors, send }
  }

  test('is the only one, also when its response is sent later', async () => {
    let runs = 0
    const { errors, send } = await open(async () => ({ runs: ++runs }))
    assert.equal(await send(), 200)
    await nextTurn()
    assert.deepEqual([runs, errors], [1, []])
  })

  test('has its error handled', async () => {
    const failure = new Error('no body')
    const { errors, send } = await open(() => Promise.reject(failure))
    assert.equal(await send(), 418)
    assert.deepEqual(errors, [failure])
  })
})

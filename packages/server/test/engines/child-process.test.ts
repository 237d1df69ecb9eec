import assert from 'node:assert/strict'
import { createHash, randomBytes } from 'node:crypto'
import { Readable } from 'node:stream'
import { type TestContext, test } from 'node:test'
import { setTimeout as pause } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import {
  type Child,
  LimitExceeded,
  ProcessDied,
  ProcessHung,
  startChild,
} from '../../src/engines/child-process/start-child.ts'

const program = fileURLToPath(new URL('echo-child.ts', import.meta.url))
/** Limits that no process reaches, also on a loaded machine; tests of a limit set their own. */
const limits = { sendMs: 60_000, answerMs: 60_000 }
const none = Buffer.alloc(0)

test('bodies of every size arrive whole, one after the other', async (t) => {
  const child = startEcho(t)
  for (const bytes of [0, 1, 65_537, 5_000_000, 3, 9_000_000, 5_000_001, 70_000]) {
    const body = randomBytes(bytes)
    assert.deepEqual(await child.sendRequest({ bytes }, body, limits), { bytes, sha1: toSha1(body) })
    assert.deepEqual(await child.sendRequest({ bytes }, toChunks(body), limits), { bytes, sha1: toSha1(body) })
  }
})

test('chunks that a request owns are freed when they are sent, and no others', async (t) => {
  const child = startEcho(t)
  for (const ownsChunks of [true, false]) {
    const chunks = [100_000, 300_000].map((bytes) => randomBytes(bytes))
    const body = Buffer.concat(chunks)
    const request = { bytes: body.length }
    const answer = await child.sendRequest(request, Readable.from(chunks), { ...limits, ownsChunks })
    assert.deepEqual(answer, { bytes: body.length, sha1: toSha1(body) })
    const left = chunks.map(({ length }) => length)
    assert.deepEqual(left, ownsChunks ? [0, 0] : [100_000, 300_000])
  }
})

test('a body that fails on its way leaves the process usable', async (t) => {
  const child = startEcho(t)
  const failing = (async function* () {
    yield randomBytes(6_000_000)
    throw new Error('the store is away')
  })()
  await assert.rejects(child.sendRequest({ bytes: 7_000_000 }, failing, limits), /the store is away/)
  assert.deepEqual(await child.sendRequest({ bytes: 3 }, Buffer.from('abc'), limits), { bytes: 3, sha1: toSha1('abc') })
})

for (const [what, invalid] of Object.entries({
  'an answer that is no JSON': '05020000007b7b',
  'an endless answer': '05ffffffff',
  'data for an answer': '020100000000',
})) {
  test(`a process that sends ${what} is killed`, async (t) => {
    const child = startEcho(t)
    await assert.rejects(child.sendRequest({ bytes: 0, invalid }, none, limits), /sent an? (invalid )?frame/)
    await child.ended
    await assert.rejects(child.sendRequest({ bytes: 0 }, none, limits), ProcessDied)
  })
}

test('a process that sends half of an answer is killed when its time is over', async (t) => {
  const child = startEcho(t)
  await assert.rejects(
    child.sendRequest({ bytes: 0, invalid: '0502' }, none, { ...limits, answerMs: 300 }),
    ProcessHung,
  )
  await child.ended
})

test('a process that is stopped is killed, while it gets the body and while it works', async (t) => {
  for (const bytes of [30_000_000, 0]) {
    const child = startEcho(t, { stallMs: 500 })
    await child.sendRequest({ bytes: 0 }, none, limits)
    process.kill(child.pid ?? 0, 'SIGSTOP')
    await assert.rejects(child.sendRequest({ bytes }, toChunks(Buffer.alloc(bytes)), limits), ProcessHung)
    await child.ended
  }
})

test('a process is not taken for stopped while it waits for a slow body', async (t) => {
  const child = startEcho(t, { stallMs: 500 })
  const slow = (async function* () {
    yield Buffer.from('a')
    await pause(1500)
    yield Buffer.from('b')
  })()
  assert.deepEqual(await child.sendRequest({ bytes: 2 }, slow, limits), { bytes: 2, sha1: toSha1('ab') })
})

test('an answer that arrives during a stall of our own event loop is not late', async (t) => {
  const child = startEcho(t)
  await child.sendRequest({ bytes: 0 }, none, limits)
  const asked = child.sendRequest({ bytes: 0, waitMs: 50 }, none, { ...limits, answerMs: 1000 })
  await new Promise(setImmediate)
  Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 2000)
  assert.deepEqual(await asked, { bytes: 0, sha1: toSha1('') })
})

test('a process that computes for longer than it may is killed, and one that waits is not', async (t) => {
  const bounded = { sendMs: 60_000, answerMs: 60_000, maxProcessorMs: 300 }
  const waiting = startEcho(t)
  const answer = await waiting.sendRequest({ bytes: 0, waitMs: 1000 }, none, bounded)
  assert.deepEqual(answer, { bytes: 0, sha1: toSha1('') })
  const spinning = startEcho(t)
  await assert.rejects(spinning.sendRequest({ bytes: 0, spins: true }, none, bounded), LimitExceeded)
  await spinning.ended
})

test('a process that holds more memory than it may is killed', async (t) => {
  const child = startEcho(t)
  await assert.rejects(
    child.sendRequest({ bytes: 0, invalid: '' }, none, { ...limits, maxMemoryMb: 1 }),
    /limit of 1 MB/,
  )
  await child.ended
})

test('a caller that waits for the answer of a killed process gets ProcessDied', async (t) => {
  const child = startEcho(t)
  const asked = child.sendRequest({ bytes: 0, invalid: '' }, none, limits)
  child.kill()
  await assert.rejects(asked, ProcessDied)
  await child.ended
})

test('the death of an idle process is noticed', async (t) => {
  const child = startEcho(t)
  await child.sendRequest({ bytes: 0 }, none, limits)
  process.kill(child.pid ?? 0, 'SIGKILL')
  await child.ended
  assert.equal(child.isDead(), true)
})

test('a program that does not exist is a process that died', async () => {
  const child = startChild('test process', { command: '/nowhere/program', args: [] })
  await assert.rejects(child.sendRequest({}, none, limits), ProcessDied)
  await child.ended
})

function startEcho(t: TestContext, options: { stallMs?: number } = {}): Child {
  const child = startChild('test process', { command: process.execPath, args: [program] }, options)
  t.after(() => child.kill())
  return child
}

async function* toChunks(body: Buffer) {
  for (let start = 0; start < body.length; start += 100_000) yield body.subarray(start, start + 100_000)
}

const toSha1 = (bytes: Buffer | string) => createHash('sha1').update(bytes).digest('hex')

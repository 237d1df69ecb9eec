import assert from 'node:assert/strict'
import { createHash, randomBytes } from 'node:crypto'
import { type TestContext, test } from 'node:test'
import { fileURLToPath } from 'node:url'
import { AnswerLate, ProcessDied, startWorkerProcess } from '../../src/engines/worker/worker-process.ts'

type Echo = { bytes: number; sha1: string } | { abandoned: true }

const program = fileURLToPath(new URL('worker-echo.ts', import.meta.url))
const limits = { sendMs: 5000, answerMs: 5000 }
const none = Buffer.alloc(0)

test('bodies of every size arrive whole, one after the other', async (t) => {
  const worker = startEcho(t)
  for (const bytes of [0, 1, 65_537, 5_000_000, 3, 9_000_000, 5_000_001, 70_000]) {
    const body = randomBytes(bytes)
    assert.deepEqual(await worker.ask({ bytes }, body, limits), { bytes, sha1: toSha1(body) })
    assert.deepEqual(await worker.ask({ bytes }, toChunks(body), limits), { bytes, sha1: toSha1(body) })
  }
})

test('a body that fails on its way leaves the process usable', async (t) => {
  const worker = startEcho(t)
  const failing = (async function* () {
    yield randomBytes(6_000_000)
    throw new Error('the store is away')
  })()
  await assert.rejects(worker.ask({ bytes: 7_000_000 }, failing, limits), /the store is away/)
  assert.deepEqual(await worker.ask({ bytes: 3 }, Buffer.from('abc'), limits), { bytes: 3, sha1: toSha1('abc') })
})

for (const [what, nonsense] of Object.entries({ 'no JSON': '020000007b7b', 'an endless answer': 'ffffffff00' })) {
  test(`a process that answers ${what} is ended`, async (t) => {
    const worker = startEcho(t)
    await assert.rejects(worker.ask({ bytes: 0, nonsense }, none, limits), /nonsense/)
    await worker.ended
    await assert.rejects(worker.ask({ bytes: 0 }, none, limits), ProcessDied)
  })
}

test('a process that says too little is late, and ended', async (t) => {
  const worker = startEcho(t)
  await assert.rejects(worker.ask({ bytes: 0, nonsense: '0200' }, none, { ...limits, answerMs: 300 }), AnswerLate)
  await worker.ended
})

test('whoever waits for a process that is given up gets the reason', async (t) => {
  const worker = startEcho(t)
  const reason = new Error('it takes too much')
  const asked = worker.ask({ bytes: 0, nonsense: '' }, none, limits)
  worker.giveUp(reason)
  await assert.rejects(asked, reason)
  await worker.ended
})

test('a program that is not there is a process that died', async () => {
  const worker = startWorkerProcess<object, object>('test process', { command: '/nowhere/program', args: [] })
  await assert.rejects(worker.ask({}, none, limits), ProcessDied)
  await worker.ended
})

function startEcho(t: TestContext) {
  const launch = { command: process.execPath, args: [program] }
  const worker = startWorkerProcess<{ bytes: number; nonsense?: string }, Echo>('test process', launch)
  t.after(() => worker.kill())
  return worker
}

async function* toChunks(body: Buffer) {
  for (let start = 0; start < body.length; start += 100_000) yield body.subarray(start, start + 100_000)
}

const toSha1 = (bytes: Buffer | string) => createHash('sha1').update(bytes).digest('hex')

import { createHash } from 'node:crypto'
import { writeSync } from 'node:fs'
import { openChildPipe } from '../../src/engines/child-process/child-pipe.ts'

type Request = {
  bytes: number
  /** Bytes to send instead of an answer. */
  invalid?: string
  /** Computes without end. */
  spins?: boolean
  /** Waits before the answer, without using the processor. */
  waitMs?: number
}

/** Answers with the length and hash of the body. */
const pipe = openChildPipe<Request, object>()
for (let received = pipe.readRequest(); received !== undefined; received = pipe.readRequest()) {
  const { request, body } = received
  while (request.spins);
  Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, request.waitMs ?? 0)
  if (request.invalid !== undefined) writeSync(3, Buffer.from(request.invalid, 'hex'))
  else pipe.answer(body === undefined ? { abandoned: true } : { bytes: body.length, sha1: toSha1(body) })
}

function toSha1(bytes: Buffer): string {
  return createHash('sha1').update(bytes).digest('hex')
}

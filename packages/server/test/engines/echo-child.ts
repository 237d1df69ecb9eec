import { createHash } from 'node:crypto'
import { writeSync } from 'node:fs'
import { openChildPipe } from '../../src/engines/child-process/child-pipe.ts'

/** Answers with the length and hash of the body, or with the given bytes instead of an answer. */
const pipe = openChildPipe<{ bytes: number; invalid?: string }, object>()
for (let received = pipe.readRequest(); received !== undefined; received = pipe.readRequest()) {
  const { request, body } = received
  if (request.invalid !== undefined) writeSync(3, Buffer.from(request.invalid, 'hex'))
  else pipe.answer(body === undefined ? { abandoned: true } : { bytes: body.length, sha1: toSha1(body) })
}

function toSha1(bytes: Buffer): string {
  return createHash('sha1').update(bytes).digest('hex')
}

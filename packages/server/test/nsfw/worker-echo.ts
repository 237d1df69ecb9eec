import { createHash } from 'node:crypto'
import { writeSync } from 'node:fs'
import { makeRequests } from '../../src/engines/worker/requests.ts'

/** Answers what came, or nonsense when asked for it. */
const requests = makeRequests<{ bytes: number; nonsense?: string }, object>()
for (let received = requests.read(); received !== undefined; received = requests.read()) {
  const { request, body } = received
  if (request.nonsense !== undefined) writeSync(3, Buffer.from(request.nonsense, 'hex'))
  else requests.answer(body === undefined ? { abandoned: true } : { bytes: body.length, sha1: toSha1(body) })
}

function toSha1(bytes: Buffer): string {
  return createHash('sha1').update(bytes).digest('hex')
}

import type { IncomingMessage } from 'node:http'
import { headers } from '@assay/contract'
import { toKeyDigest } from '../../packages/server/src/domain/accounts/keys.ts'
import { findKnownDoubts } from '../../packages/server/src/domain/content/container.ts'
import { findMediaType } from '../../packages/server/src/domain/content/media-type.ts'
import { newMultipartParser } from '../../packages/server/src/domain/content/multipart.ts'
import { newTraceId } from '../../packages/server/src/http/request.ts'
import { makeServiceLogs } from '../../packages/server/src/runtime/logger.ts'
import { makeMetrics } from '../../packages/server/src/runtime/metrics.ts'

/*
 * The checks that every scan of Assay makes besides reading bytes, hashes, clamd and the charge: a strict reading of the
 * form, the media type, content that clamd cannot open, the digest of the key, a log line, a metric, and the headers of
 * the interface. The functions are those of Assay; here nothing lies between them.
 */

const { logRequest } = makeServiceLogs({ level: 'info', region: 'bench' })
const metrics = makeMetrics({ region: 'bench', version: 'bench' })

/** Returns the file of a form that arrived whole and has no other part. */
export function readForm(form: Buffer, boundary: string): Buffer {
  const parts: Buffer[] = []
  const sink = { write: (bytes: Buffer) => void parts.push(bytes), end() {} }
  const parser = newMultipartParser({ boundary, maxParts: 110, openPart: () => sink })
  parser.push(form)
  parser.finish()
  return parts.length === 1 ? (parts[0] as Buffer) : Buffer.concat(parts)
}

type Hashes = { hash_sha1: string; hash_sha256: string }

/** Finds the media type, and whether the content holds what clamd cannot open. */
export async function checkContent(whole: Buffer, { hash_sha1: sha1, hash_sha256: sha256 }: Hashes) {
  const doubts = await findKnownDoubts({
    bytes: whole.length,
    head: whole,
    sha1,
    sha256,
    isInMemory: true,
    whole,
    async *read(start = 0, end = whole.length) {
      yield whole.subarray(start, end)
    },
    async release() {},
  })
  return { contentType: await findMediaType(whole, whole.length), isDoubtful: (doubts ?? []).length > 0 }
}

/** Notes a request that succeeds, and returns the headers of its response. */
export function noteRequest({ method = '', url: path = '', headers: sent }: IncomingMessage, startedAt: Date) {
  const ms = Date.now() - startedAt.getTime()
  const traceId = newTraceId(sent.traceparent as string | undefined)
  // The load sends no key to this program. The digest of another text costs as much, and stands for an account's id.
  const accountId = toKeyDigest('a key')
  metrics.observeRequest('scanMalwareFile', 201, ms / 1000)
  logRequest({ traceId, method, path, status: 201, ms, accountId })
  return {
    [headers.region]: 'bench',
    'x-content-type-options': 'nosniff',
    [headers.creditLimit]: '1000000000',
    [headers.creditRemaining]: '1000000000',
    [headers.rateLimit]: '1m',
    [headers.rateRemaining]: '1000000',
    [headers.rateReset]: startedAt.toISOString(),
  }
}

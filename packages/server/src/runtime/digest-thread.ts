import { createHash, type Hash } from 'node:crypto'
import { parentPort } from 'node:worker_threads'

/**
 * Bytes of one content, in order. `isLast` asks for the digests; a message without pieces forgets the content. The
 * first message of a content decides whether its SHA-1 is computed.
 */
export type DigestRequest = {
  id: number
  pieces?: Uint8Array<ArrayBuffer>[]
  isLast?: boolean
  wantsSha1?: boolean
}
/** `sha1` is undefined if it was not wanted. */
export type Digests = { sha1: string | undefined; sha256: string }
export type DigestReply = { pieces: Uint8Array<ArrayBuffer>[]; digests: Digests | undefined }

const running = new Map<number, { sha1: Hash | undefined; sha256: Hash }>()

parentPort?.on('message', ({ id, pieces, isLast, wantsSha1 }: DigestRequest) => {
  if (pieces === undefined) {
    running.delete(id)
    return
  }
  const { sha1, sha256 } = running.get(id) ?? {
    sha1: wantsSha1 === true ? createHash('sha1') : undefined,
    sha256: createHash('sha256'),
  }
  running.set(id, { sha1, sha256 })
  for (const piece of pieces) {
    sha1?.update(piece)
    sha256.update(piece)
  }
  let digests: Digests | undefined
  if (isLast === true) {
    digests = { sha1: sha1?.digest('hex'), sha256: sha256.digest('hex') }
    running.delete(id)
  }
  const reply: DigestReply = { pieces, digests }
  parentPort?.postMessage(
    reply,
    pieces.map(({ buffer }) => buffer),
  )
})

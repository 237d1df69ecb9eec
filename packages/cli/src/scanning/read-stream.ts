import type { Readable } from 'node:stream'

/** Up to this much of a stream is held, to be sent in one piece, and again if need be. */
const smallBytes = 1024 * 1024

/** All of a stream that is short; else all of it as a stream, from its beginning. */
export async function readStream(stream: Readable): Promise<Buffer | AsyncIterable<Uint8Array>> {
  const iterator = stream[Symbol.asyncIterator]() as AsyncIterator<Buffer>
  const chunks: Buffer[] = []
  for (let bytes = 0; bytes <= smallBytes; ) {
    const { done, value } = await iterator.next()
    if (done) return Buffer.concat(chunks)
    chunks.push(value)
    bytes += value.length
  }
  return (async function* () {
    try {
      yield* chunks
      for (;;) {
        const { done, value } = await iterator.next()
        if (done) return
        yield value
      }
    } finally {
      stream.destroy()
    }
  })()
}

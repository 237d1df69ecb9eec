import type { Transform } from 'node:stream'
import { createInflate, createInflateRaw, createZstdDecompress, inflateRawSync } from 'node:zlib'

const decoders = { deflate: createInflateRaw, zlib: createInflate, zstd: createZstdDecompress }

/**
 * Decompresses one stream. `getUsedBytes` tells how many bytes of the input belong to it, once the pieces are read to
 * their end. Reading the pieces throws when the stream is damaged or ends early.
 */
export function decompress(method: keyof typeof decoders, input: Iterable<Buffer> | AsyncIterable<Buffer>) {
  let usedBytes = 0

  async function* readPieces(): AsyncGenerator<Buffer> {
    const decoder: Transform & { bytesWritten: number } = decoders[method]()
    const closed = new Promise<void>((resolve) => decoder.once('end', resolve).once('close', resolve))
    void feed(decoder, input, closed).catch((error) => decoder.destroy(error))
    try {
      yield* decoder as AsyncIterable<Buffer>
    } finally {
      usedBytes = decoder.bytesWritten
      decoder.destroy()
    }
  }

  return { pieces: readPieces(), getUsedBytes: () => usedBytes }
}

/** Deflated data up to this length is decompressed at once. */
export const smallBytes = 65_536
const maxInflatedBytes = 2 ** 20

/**
 * Decompresses a short stream of Deflate at once, which takes a tenth of the time that a stream takes. Undefined when it
 * is damaged, ends early or is too long: `decompress` then gives what can be read.
 */
export function inflateSmall(bytes: Buffer): Buffer | undefined {
  try {
    return inflateRawSync(bytes, { maxOutputLength: maxInflatedBytes })
  } catch {
    return undefined
  }
}

/** Writes the input until the decoder has reached the end of its stream, which may lie before the end of the input. */
async function feed(decoder: Transform, input: Iterable<Buffer> | AsyncIterable<Buffer>, closed: Promise<void>) {
  for await (const piece of input) {
    if (decoder.readableEnded || decoder.destroyed) return
    if (!decoder.write(piece)) {
      await Promise.race([closed, new Promise<void>((resolve) => decoder.once('drain', resolve))])
    }
  }
  decoder.end()
}

import { createCipheriv, createDecipheriv, createSecretKey, hkdfSync, type KeyObject } from 'node:crypto'
import { drawRandom } from '../domain/accounts/keys.ts'
import { freeBuffer } from '../runtime/memory.ts'
import type { MemoryBudget } from './memory-content.ts'

/**
 * Content is encrypted in frames of 64 KiB, each with its own tag (the STREAM construction): it can be written as it
 * arrives and read from any position, and frames cannot be changed, reordered or cut off unnoticed. Measured at 823
 * MB/s on one core, faster than one long GCM message.
 */
export const frameBytes = 64 * 1024
export const sealedFrameBytes = frameBytes + 16
export const noncePrefixBytes = 7

/** Without a fixed length, a tag that was cut to 4 bytes would be accepted. */
const tag = { authTagLength: 16 }

/** The key of one object's frames. A `KeyObject`, because a plain buffer as key costs 25 µs more for each frame. */
export type FrameKey = { key: KeyObject; noncePrefix: Buffer }

/** Encrypts a frame, in two buffers to be written one after the other: joining them would copy the frame. */
export function sealFrame({ key, noncePrefix }: FrameKey, index: number, isLast: boolean, clear: Buffer): Buffer[] {
  const cipher = createCipheriv('aes-256-gcm', key, toNonce(noncePrefix, index, isLast), tag)
  const sealed = cipher.update(clear)
  cipher.final()
  return [sealed, cipher.getAuthTag()]
}

/** Throws when the frame was changed or moved, or when the content was cut off behind it. */
export function openFrame({ key, noncePrefix }: FrameKey, index: number, isLast: boolean, sealed: Buffer): Buffer {
  const decipher = createDecipheriv('aes-256-gcm', key, toNonce(noncePrefix, index, isLast), tag)
  decipher.setAuthTag(sealed.subarray(sealed.length - 16))
  const clear = decipher.update(sealed.subarray(0, sealed.length - 16))
  decipher.final()
  return clear
}

/** 7 random bytes of the object, 4 bytes of the index, 1 byte that marks the last frame: unique under one key. */
function toNonce(noncePrefix: Buffer, index: number, isLast: boolean): Buffer {
  const nonce = Buffer.allocUnsafe(12)
  noncePrefix.copy(nonce)
  nonce.writeUInt32BE(index, noncePrefixBytes)
  nonce[11] = isLast ? 1 : 0
  return nonce
}

const saltBytes = 32

/**
 * The header before the frames of an object: a random salt and the prefix of its nonces. The key of the frames is
 * derived from the salt and from the content key, which is not stored with the object. Erasing the header makes the
 * object unreadable even for those who have the content key.
 */
export const objectHeaderBytes = saltBytes + noncePrefixBytes

export const newContentKey = (): Buffer => drawRandom(32)

export function newObjectKey(contentKey: Buffer): { frameKey: FrameKey; header: Buffer } {
  const header = drawRandom(objectHeaderBytes)
  return { frameKey: openObjectKey(header, contentKey), header }
}

export const openObjectKey = (header: Buffer, contentKey: Buffer): FrameKey => ({
  key: createSecretKey(Buffer.from(hkdfSync('sha256', contentKey, header.subarray(0, saltBytes), 'frames', 32))),
  noncePrefix: Buffer.from(header.subarray(saltBytes, objectHeaderBytes)),
})

/** An object that sealed frames are read from. */
type FrameSource = {
  frameKey: FrameKey
  /** The length of the clear content. */
  bytes: number
  framesPerCall: number
  /** Reads sealed frames; fewer when the object was cut off. The buffer is valid until the next call. */
  fetch(first: number, count: number): Promise<Buffer>
}

/** The offset of a frame in its object. */
export const toFrameOffset = (index: number): number => objectHeaderBytes + index * sealedFrameBytes

export const countFrames = (bytes: number): number => Math.max(1, Math.ceil(bytes / frameBytes))

/** Yields clear content from `start` to `end`, frame by frame; each frame is authenticated before it is yielded. */
export async function* readFrames(source: FrameSource, start = 0, end = source.bytes): AsyncGenerator<Buffer> {
  const stop = Math.min(end, source.bytes)
  const lastFrame = countFrames(source.bytes) - 1
  for (let at = start; at < stop; ) {
    const first = Math.floor(at / frameBytes)
    const count = Math.min(source.framesPerCall, Math.ceil(stop / frameBytes) - first)
    const sealed = await source.fetch(first, count)
    for (let index = first; index < first + count; index++) {
      const offset = (index - first) * sealedFrameBytes
      const frame = sealed.subarray(offset, offset + sealedFrameBytes)
      const clear = openFrame(source.frameKey, index, index === lastFrame, frame)
      const from = at - index * frameBytes
      const part =
        from === 0 && stop >= (index + 1) * frameBytes ? clear : clear.subarray(from, stop - index * frameBytes)
      at += part.length
      yield part
    }
  }
}

type WriterDeps = {
  frameKey: FrameKey
  header: Buffer
  /** Stores sealed bytes. Called in order, one call at a time, with the header first. */
  put(batch: Buffer[]): Promise<unknown>
  /** Frames that find no memory here are stored at once. */
  memory?: MemoryBudget | undefined
}

/** The number of frames that one call of `put` stores. */
const framesPerPut = 8
/** A frame that took longer to arrive is stored at once: a slow client would keep the others in memory for minutes. */
const slowFrameMs = 250
/** The first size of the buffer that gathers a frame; it doubles up to a whole frame. */
const minBufferBytes = 16 * 1024

/** Encrypts content as it arrives and passes it to `put`. */
export function makeFrameWriter({ frameKey, header, put, memory }: WriterDeps) {
  const frameBuffer = makeFrameBuffer()
  let beganAtMs = performance.now()
  let frames = 0
  let sealed: Buffer[] = [header]
  /** Bytes of the memory budget that the sealed frames hold. */
  let heldBytes = 0
  /** The sealed frames must be stored with the next write. */
  let isDue = false
  /** The calls of `put` so far. A failure stays, and the next call of `write` or `finish` reports it. */
  let writing: Promise<unknown> = Promise.resolve()

  const seal = (isLast: boolean) => {
    sealed.push(...sealFrame(frameKey, frames, isLast, frameBuffer.take()))
    frames++
    const nowMs = performance.now()
    const isSlow = nowMs - beganAtMs > slowFrameMs
    beganAtMs = nowMs
    if (isSlow || isLast) frameBuffer.free()
    if (isSlow) isDue = true
    else if (memory !== undefined) {
      if (memory.take(frameBytes)) heldBytes += frameBytes
      else isDue = true
    }
  }
  const flush = () => {
    const batch = sealed
    const batchHeld = heldBytes
    sealed = []
    heldBytes = 0
    isDue = false
    writing = writing
      .then(() => put(batch))
      .then(() => batch.forEach(freeBuffer))
      .finally(() => memory?.release(batchHeld))
    writing.catch(() => {})
  }

  return {
    /** Returns a promise when the storage is behind; the caller should wait for it before it writes much more. */
    write(chunk: Buffer): Promise<void> | undefined {
      const before = writing
      for (let at = 0; at < chunk.length; ) {
        // A full frame is sealed when more content follows, because the last frame carries a mark.
        if (frameBuffer.isFull()) seal(false)
        at += frameBuffer.add(chunk, at)
      }
      if (sealed.length < 2 * framesPerPut && !isDue) return undefined
      flush()
      return before.then(() => {})
    },
    /** Resolves when all content is stored. */
    async finish() {
      seal(true)
      flush()
      await writing
    },
    /** Resolves when no call of `put` runs any more, even if one failed. */
    async stop() {
      await writing.catch(() => {})
      frameBuffer.free()
      memory?.release(heldBytes)
      heldBytes = 0
    },
  }
}

/** Gathers the bytes of one frame. The buffer grows by doubling, so that a small upload does not take a whole frame. */
function makeFrameBuffer() {
  let buffer: Buffer | undefined
  let filled = 0

  const free = () => {
    if (buffer !== undefined) freeBuffer(buffer)
    buffer = undefined
  }
  const grow = (wanted: number): Buffer => {
    let bytes = buffer?.length ?? minBufferBytes
    while (bytes < Math.min(filled + wanted, frameBytes)) bytes *= 2
    if (buffer?.length === bytes) return buffer
    const larger = Buffer.allocUnsafeSlow(bytes)
    buffer?.copy(larger, 0, 0, filled)
    free()
    buffer = larger
    return larger
  }
  return {
    isFull: () => filled === frameBytes,
    /** Copies bytes of the chunk from `at` on, as many as fit, and returns their number. */
    add(chunk: Buffer, at: number): number {
      const copied = chunk.copy(grow(chunk.length - at), filled, at)
      filled += copied
      return copied
    },
    /** Returns the gathered bytes, which the next `add` overwrites. */
    take(): Buffer {
      const bytes = buffer?.subarray(0, filled) ?? Buffer.alloc(0)
      filled = 0
      return bytes
    },
    free,
  }
}

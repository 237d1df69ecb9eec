import { createHash } from 'node:crypto'
import type { Content } from '../domain/content/content.ts'
import { headBytes } from '../domain/content/media-type.ts'
import { freeBuffer } from '../runtime/free-buffer.ts'
import type { SealedWriter } from './sealed-file.ts'

/** `keep` leaves it in its file for good, and lets go of it. */
export type StoredContent = Content & { keep(): Promise<void> }

/** Content that outgrew the memory: hashed as it passes, then encrypted and written. */
export function makeSpool(createFile: () => Promise<SealedWriter>) {
  const sha1 = createHash('sha1')
  const sha256 = createHash('sha256')
  // In one piece from the beginning: growing it with each chunk of a slow upload left a megabyte of garbage.
  const head = Buffer.allocUnsafeSlow(headBytes)
  let headLength = 0
  let file: SealedWriter | undefined
  const opening = createFile().then((opened) => {
    file = opened
  })
  opening.catch(() => {})
  const pass = (chunk: Buffer) => {
    const caughtUp = file?.write(chunk)
    freeBuffer(chunk)
    return caughtUp
  }

  return {
    write(chunk: Buffer): Promise<void> | undefined {
      if (headLength < headBytes) headLength += chunk.copy(head, headLength)
      sha1.update(chunk)
      sha256.update(chunk)
      if (file !== undefined) return pass(chunk)
      const passed = opening.then(() => pass(chunk))
      // Whoever does not wait learns of a failure from `finish`.
      passed.catch(() => {})
      return passed
    },
    async finish(bytes: number): Promise<StoredContent> {
      await opening
      const sealed = await (file as SealedWriter).finish(bytes)
      let removed: Promise<void> | undefined
      return {
        bytes,
        head: head.subarray(0, headLength),
        sha1: sha1.digest('hex'),
        sha256: sha256.digest('hex'),
        whole: undefined,
        read: sealed.read,
        release() {
          removed ??= sealed.remove()
          return removed
        },
        async keep() {
          await sealed.sync()
          removed = sealed.close()
          await removed
        },
      }
    },
    async abort() {
      await opening.catch(() => {})
      const opened = file
      file = undefined
      await opened?.remove()
    },
  }
}

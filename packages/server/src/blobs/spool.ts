import { createHash } from 'node:crypto'
import { buffer } from 'node:stream/consumers'
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
  let head: Buffer | undefined
  let headLength = 0
  let file: SealedWriter | undefined
  const opening = createFile().then((opened) => {
    file = opened
    // A thousand slow uploads would hold 64 MB of these.
    if (opened.isNear) letGoOfHead()
  })
  opening.catch(() => {})
  const keepHead = (chunk: Buffer) => {
    if (file?.isNear === true || headLength === headBytes) return
    // In one piece from the beginning: growing it with each chunk of a slow upload left a megabyte of garbage.
    head ??= Buffer.allocUnsafeSlow(headBytes)
    headLength += chunk.copy(head, headLength)
  }
  const letGoOfHead = () => {
    if (head !== undefined) freeBuffer(head)
    head = undefined
  }
  const pass = (chunk: Buffer) => {
    const caughtUp = file?.write(chunk)
    freeBuffer(chunk)
    return caughtUp
  }

  return {
    write(chunk: Buffer): Promise<void> | undefined {
      keepHead(chunk)
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
      const { isNear, finish } = file as SealedWriter
      const sealed = await finish(bytes)
      const first = isNear ? await buffer(sealed.read(0, Math.min(headBytes, bytes))) : head?.subarray(0, headLength)
      let removed: Promise<void> | undefined
      return {
        bytes,
        head: first ?? Buffer.alloc(0),
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

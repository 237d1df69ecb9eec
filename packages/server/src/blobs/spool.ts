import { buffer } from 'node:stream/consumers'
import type { Content } from '../domain/content/content.ts'
import { headBytes } from '../domain/content/content.ts'
import { freeBuffer } from '../runtime/free-buffer.ts'
import type { SealedWriter } from './sealed-file.ts'

/** Content in a file. `keep` closes the file and leaves it in place. */
export type StoredContent = Content & { keep(): Promise<void> }

/** Writes content to an encrypted file, which is created at once. */
export function makeSpool(createFile: () => Promise<SealedWriter>) {
  let head: Buffer | undefined
  let headLength = 0
  let file: SealedWriter | undefined
  const opening = createFile().then((opened) => {
    file = opened
  })
  opening.catch(() => {})

  const keepHead = (piece: Buffer) => {
    // The head can be read from a local file: a thousand slow uploads would hold 64 MB of heads.
    if (file?.isLocal === true || headLength === headBytes) return
    // Allocated once: a buffer that grew with each piece of a slow upload left a megabyte of garbage.
    head ??= Buffer.allocUnsafeSlow(headBytes)
    headLength += piece.copy(head, headLength)
  }

  return {
    opening,
    /** Encrypts the piece, whose memory is free afterwards. Call it when `opening` is resolved, for one at a time. */
    write(piece: Buffer): Promise<void> | undefined {
      keepHead(piece)
      return (file as SealedWriter).write(piece)
    },
    async finish(bytes: number, sha256: string): Promise<Omit<StoredContent, 'sha1'>> {
      await opening
      const { isLocal, finish } = file as SealedWriter
      const sealed = await finish(bytes)
      const first = isLocal ? await buffer(sealed.read(0, Math.min(headBytes, bytes))) : head?.subarray(0, headLength)
      let removed: Promise<void> | undefined
      return {
        sha256,
        bytes,
        head: first ?? Buffer.alloc(0),
        isInMemory: false,
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
      if (head !== undefined) freeBuffer(head)
      await opened?.remove()
    },
  }
}

export type Spool = ReturnType<typeof makeSpool>

import { type FileHandle, open, unlink } from 'node:fs/promises'
import { buffer } from 'node:stream/consumers'
import { type Content, headBytes } from '../domain/content/content.ts'
import { freeBuffer } from '../runtime/memory.ts'
import { countBytes, type DiskSpace, toStorageProblem, writeAll } from './disk-space.ts'
import {
  countFrames,
  type FrameKey,
  objectHeaderBytes as headerBytes,
  makeFrameWriter,
  newObjectKey,
  openObjectKey,
  readFrames,
  sealedFrameBytes,
  toFrameOffset,
} from './frames.ts'
import type { MemoryBudget } from './memory-content.ts'

/** The number of frames that one call reads from the disk. */
const framesPerCall = 8

/** Limits on files: `disk` refuses content when space is short; frames that find no `memory` are written at once. */
export type FileBounds = { disk?: DiskSpace | undefined; memory?: MemoryBudget | undefined }

/** Content that is encrypted and stored. */
export type SealedContent = {
  read(start?: number, end?: number): AsyncGenerator<Buffer>
  remove(): Promise<void>
  /** Closes the content and leaves it in the storage. */
  close(): Promise<void>
  /** Resolves when the content would survive a power cut. */
  sync(): Promise<void>
}

/** Encrypts content and writes it to the storage. */
export type SealedWriter = {
  /** The storage is a local disk, from which content is read about as fast as from memory. */
  isLocal: boolean
  /** Returns a promise when the storage is behind; see `ContentWriter`. */
  write(chunk: Buffer): Promise<void> | undefined
  finish(bytes: number): Promise<SealedContent>
  /** Removes everything that was written, also after a write failed. */
  remove(): Promise<void>
}

/** Creates an encrypted file: the header, then frames. Opening the file again needs the content key. */
export async function createSealedFile(
  path: string,
  contentKey: Buffer,
  { disk, memory }: FileBounds = {},
): Promise<SealedWriter> {
  const { frameKey, header } = newObjectKey(contentKey)
  disk?.requireSome()
  const file = await open(path, 'wx+', 0o600).catch((error) => {
    throw toStorageProblem(error)
  })
  let diskBytes = 0
  const release = () => disk?.release(diskBytes)
  const put = (batch: Buffer[]) => {
    const bytes = countBytes(batch)
    disk?.take(bytes)
    diskBytes += bytes
    return writeAll(file, batch)
  }
  const frames = makeFrameWriter({ frameKey, header, put, memory })
  return {
    isLocal: true,
    write: frames.write,
    async finish(bytes) {
      await frames.finish()
      return openSealedFile({ file, path, frameKey, bytes, onRemoved: release })
    },
    async remove() {
      await frames.stop()
      await erase(file, path).finally(release)
    },
  }
}

/** Overwrites the header before it removes the file: without it, remains of the file on the disk are unreadable. */
async function erase(file: FileHandle, path: string) {
  // A disk that is full or broken may refuse the write; the file is removed all the same.
  await file.write(Buffer.alloc(headerBytes), 0, headerBytes, 0).catch(() => {})
  await file.close()
  await unlink(path)
}

/** Opens a file that this or another process has written. */
export async function reopenSealedFile(path: string, contentKey: Buffer, bytes: number): Promise<SealedContent> {
  const file = await open(path, 'r+')
  try {
    const header = Buffer.alloc(headerBytes)
    await file.read(header, 0, headerBytes, 0)
    return openSealedFile({ file, path, bytes, frameKey: openObjectKey(header, contentKey) })
  } catch (error) {
    await file.close()
    throw error
  }
}

/** Removes a file without reading its header, which a removal before a crash may have overwritten already. */
export async function removeSealedFile(path: string) {
  await erase(await open(path, 'r+'), path)
}

type OpenSealedFile = { file: FileHandle; path: string; frameKey: FrameKey; bytes: number; onRemoved?(): void }

function openSealedFile({ file, path, frameKey, bytes, onRemoved }: OpenSealedFile): SealedContent {
  return {
    read(start, end) {
      const frames = Math.min(framesPerCall, countFrames(Math.min(end ?? bytes, bytes)))
      const sealed = Buffer.allocUnsafe(frames * sealedFrameBytes)
      const fetch = async (first: number, count: number) => {
        const { bytesRead } = await file.read(sealed, 0, count * sealedFrameBytes, toFrameOffset(first))
        return sealed.subarray(0, bytesRead)
      }
      return readFrames({ frameKey, bytes, framesPerCall, fetch }, start, end)
    },
    remove: () => erase(file, path).finally(onRemoved),
    close: () => file.close(),
    sync: () => file.sync(),
  }
}

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

import { type FileHandle, open, unlink } from 'node:fs/promises'
import type { ContentMemory } from './content-memory.ts'
import { type DiskRoom, toRoomProblem } from './disk-room.ts'
import { countFrames, readFrames, toPlace } from './frame-reader.ts'
import { makeFrameWriter } from './frame-writer.ts'
import { type FrameKey, sealedFrameBytes } from './frames.ts'
import type { MasterKey } from './master-key.ts'
import { objectHeaderBytes as headerBytes, newObjectKey, openObjectKey } from './object-key.ts'
import { countBytes, writeAll } from './write-all.ts'

/** Frames that come from the disk in one call. */
const framesPerCall = 8

/** The room refuses what the disk should not take. Frames that find no memory to be collected in are written at once. */
export type FileBounds = { room?: DiskRoom | undefined; memory?: ContentMemory | undefined }

/** Content that was sealed and stored, to be read, removed, or left there. */
export type SealedContent = {
  read(start?: number, end?: number): AsyncGenerator<Buffer>
  remove(): Promise<void>
  /** Lets go of it; it stays where it is. */
  close(): Promise<void>
  /** Until it would outlive a power cut. */
  sync(): Promise<void>
}

/** Content on its way there. */
export type SealedWriter = {
  /** It can be read again as quickly as from memory, or nearly so. */
  isNear: boolean
  /** A promise when the storage has to catch up. */
  write(chunk: Buffer): Promise<void> | undefined
  finish(bytes: number): Promise<SealedContent>
  /** Also when a write failed. */
  remove(): Promise<void>
}

/** An encrypted file: the wrapped key, then frames. */
export async function createSealedFile(
  path: string,
  master: MasterKey,
  { room, memory }: FileBounds = {},
): Promise<SealedWriter> {
  const { frameKey, header } = newObjectKey(master)
  room?.requireSome()
  const file = await open(path, 'wx+', 0o600).catch((error) => {
    throw toRoomProblem(error)
  })
  let taken = 0
  const release = () => room?.release(taken)
  const put = (batch: Buffer[]) => {
    const bytes = countBytes(batch)
    room?.take(bytes)
    taken += bytes
    return writeAll(file, batch)
  }
  const frames = makeFrameWriter({ frameKey, header, put, memory })
  return {
    isNear: true,
    write: frames.write,
    async finish(bytes) {
      await frames.finish()
      return openSealedFile({ file, path, frameKey, bytes, onRemoved: release })
    },
    async remove() {
      await frames.complete()
      await erase(file, path).finally(release)
    },
  }
}

/** Without its key the content is gone, whatever the disk keeps of it; so the key goes first. */
async function erase(file: FileHandle, path: string) {
  // A disk that is full or broken may refuse even that; the file goes all the same.
  await file.write(Buffer.alloc(headerBytes), 0, headerBytes, 0).catch(() => {})
  await file.close()
  await unlink(path)
}

/** One that was written before, by this process or another. */
export async function reopenSealedFile(path: string, master: MasterKey, bytes: number): Promise<SealedContent> {
  const file = await open(path, 'r+')
  try {
    const header = Buffer.alloc(headerBytes)
    await file.read(header, 0, headerBytes, 0)
    return openSealedFile({ file, path, bytes, frameKey: openObjectKey(header, master) })
  } catch (error) {
    await file.close()
    throw error
  }
}

/** Its key is not asked for: a removal that a crash broke off has wiped it already. */
export async function removeSealedFile(path: string) {
  await erase(await open(path, 'r+'), path)
}

type Sealed = { file: FileHandle; path: string; frameKey: FrameKey; bytes: number; onRemoved?(): void }

function openSealedFile({ file, path, frameKey, bytes, onRemoved }: Sealed): SealedContent {
  return {
    read(start, end) {
      const frames = Math.min(framesPerCall, countFrames(Math.min(end ?? bytes, bytes)))
      const sealed = Buffer.allocUnsafe(frames * sealedFrameBytes)
      const fetch = async (first: number, count: number) => {
        const { bytesRead } = await file.read(sealed, 0, count * sealedFrameBytes, toPlace(first))
        return sealed.subarray(0, bytesRead)
      }
      return readFrames({ frameKey, bytes, framesPerCall, fetch }, start, end)
    },
    remove: () => erase(file, path).finally(onRemoved),
    close: () => file.close(),
    sync: () => file.sync(),
  }
}

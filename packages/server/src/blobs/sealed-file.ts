import { type FileHandle, open, unlink } from 'node:fs/promises'
import { freeBuffer } from '../runtime/free-buffer.ts'
import type { ContentMemory } from './content-memory.ts'
import { type DiskRoom, toRoomProblem } from './disk-room.ts'
import { type FrameKey, frameBytes, openFrame, sealedFrameBytes, sealFrame } from './frames.ts'
import type { MasterKey } from './master-key.ts'
import { objectHeaderBytes as headerBytes, newObjectKey, openObjectKey } from './object-key.ts'

/** Frames that go to the disk, or come from it, in one call. */
const framesPerCall = 8

/** The room refuses what the disk should not take. Frames that find no memory to be collected in are written at once. */
export type FileBounds = { room?: DiskRoom | undefined; memory?: ContentMemory | undefined }

/** Content on its way into an encrypted file: the wrapped key, then frames. */
export async function createSealedFile(path: string, master: MasterKey, { room, memory }: FileBounds = {}) {
  const { frameKey, header } = newObjectKey(master)
  room?.requireSome()
  const file = await open(path, 'wx+', 0o600).catch((error) => {
    throw toRoomProblem(error)
  })
  const clear = Buffer.allocUnsafe(frameBytes)
  let filled = 0
  let frames = 0
  let sealed: Buffer[] = [header]
  let taken = 0
  /** Of the shared memory, for frames that are being collected. */
  let held = 0
  let isFull = false
  /** One write is under way, the next is being collected. A failure stays, and the next call reports it. */
  let writing: Promise<unknown> = Promise.resolve()

  const giveBack = () => room?.giveBack(taken)
  const seal = (isLast: boolean) => {
    sealed.push(...sealFrame(frameKey, frames, isLast, clear.subarray(0, filled)))
    frames++
    filled = 0
    if (memory === undefined) return
    if (memory.take(frameBytes)) held += frameBytes
    else isFull = true
  }
  const flush = () => {
    const batch = sealed
    const lent = held
    sealed = []
    held = 0
    isFull = false
    const bytes = batch.reduce((sum, { length }) => sum + length, 0)
    writing = writing.then(() => {
      room?.take(bytes)
      taken += bytes
      return writeAll(file, batch)
    })
    writing = writing.then(() => batch.forEach(freeBuffer)).finally(() => memory?.giveBack(lent))
    writing.catch(() => {})
  }

  return {
    /** A promise when the disk has to catch up. */
    write(chunk: Buffer): Promise<void> | undefined {
      const before = writing
      for (let at = 0; at < chunk.length; ) {
        // A full frame is sealed only when more follows: the last one carries the mark of the end.
        if (filled === frameBytes) seal(false)
        const taken = chunk.copy(clear, filled, at)
        filled += taken
        at += taken
      }
      if (sealed.length < 2 * framesPerCall && !isFull) return undefined
      flush()
      return before.then(() => {})
    },
    async finish(bytes: number) {
      seal(true)
      flush()
      await writing
      return openSealedFile({ file, path, frameKey, bytes, onRemoved: giveBack })
    },
    /** Also when a write failed. */
    async remove() {
      await writing.catch(() => {})
      memory?.giveBack(held)
      held = 0
      await erase(file, path).finally(giveBack)
    },
  }
}

/** A disk that becomes full may take a part; then it says so to the rest. */
async function writeAll(file: FileHandle, batch: Buffer[]) {
  try {
    const wanted = batch.reduce((sum, { length }) => sum + length, 0)
    const { bytesWritten } = await file.writev(batch)
    if (bytesWritten < wanted) await file.writeFile(Buffer.concat(batch).subarray(bytesWritten))
  } catch (error) {
    throw toRoomProblem(error)
  }
}

export type SealedFileWriter = Awaited<ReturnType<typeof createSealedFile>>

/** Without its key the content is gone, whatever the disk keeps of it; so the key goes first. */
async function erase(file: FileHandle, path: string) {
  // A disk that is full or broken may refuse even that; the file goes all the same.
  await file.write(Buffer.alloc(headerBytes), 0, headerBytes, 0).catch(() => {})
  await file.close()
  await unlink(path)
}

/** One that was written before, by this process or another. */
export async function reopenSealedFile(path: string, master: MasterKey, bytes: number) {
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

function openSealedFile({ file, path, frameKey, bytes, onRemoved }: Sealed) {
  const lastFrame = Math.max(0, Math.ceil(bytes / frameBytes) - 1)
  const openAt = (index: number, sealed: Buffer) =>
    openFrame(frameKey, index, index === lastFrame, sealed.subarray(0, sealedFrameBytes))

  return {
    /** Frame by frame; the first and the last may be parts of one. */
    async *read(start = 0, end = bytes): AsyncGenerator<Buffer> {
      const stop = Math.min(end, bytes)
      const sealed = Buffer.allocUnsafe(framesPerCall * sealedFrameBytes)
      for (let at = start; at < stop; ) {
        const first = Math.floor(at / frameBytes)
        const count = Math.min(framesPerCall, Math.ceil(stop / frameBytes) - first)
        const place = headerBytes + first * sealedFrameBytes
        const { bytesRead } = await file.read(sealed, 0, count * sealedFrameBytes, place)
        for (let index = first; index < first + count; index++) {
          const clear = openAt(index, sealed.subarray((index - first) * sealedFrameBytes, bytesRead))
          const from = at - index * frameBytes
          const part =
            from === 0 && stop >= (index + 1) * frameBytes ? clear : clear.subarray(from, stop - index * frameBytes)
          at += part.length
          yield part
        }
      }
    },
    remove: () => erase(file, path).finally(onRemoved),
    /** Lets go of it; it stays where it is. */
    close: () => file.close(),
    /** Until the disk has it. */
    sync: () => file.sync(),
  }
}

import { type FileHandle, mkdir, open, unlink } from 'node:fs/promises'
import { join } from 'node:path'
import { v7 as newUuid } from 'uuid'
import { StorageUnavailable } from '../../domain/ports/content-store.ts'
import { countBytes, toStorageProblem, writeAll } from '../disk-space.ts'
import {
  countFrames,
  type FrameKey,
  makeFrameWriter,
  newObjectKey,
  objectHeaderBytes,
  openObjectKey,
  readFrames,
  sealedFrameBytes,
  toFrameOffset,
} from '../frames.ts'
import type { FileBounds, SealedContent, SealedWriter } from '../sealed-file.ts'
import type { Part, S3Calls } from './s3-calls.ts'

type Deps = { calls: S3Calls; buffers: PartBuffers; stagingDir: string } & FileBounds

/** An object of the store, in the same form as a sealed file: the header, then frames. */
export async function createSealedObject(key: string, contentKey: Buffer, deps: Deps): Promise<SealedWriter> {
  const { calls, buffers, disk, memory } = deps
  const { frameKey, header } = newObjectKey(contentKey)
  disk?.requireSome()
  const file = await openUnlinkedFile(deps.stagingDir).catch((error) => {
    throw toStorageProblem(error)
  })
  const giveUp = new AbortController()
  const upload = makePartUpload({ calls, key, buffers, file, signal: giveUp.signal })
  let staged = 0
  const append = (batch: Buffer[]) => {
    // The upload reuses the staging file, which grows no further than two parts.
    const grows = Math.min(countBytes(batch), maxStagedBytes - staged)
    if (grows > 0) disk?.take(grows)
    staged += grows
    return upload.append(batch)
  }
  const frames = makeFrameWriter({ frameKey, header, put: append, memory })
  const closeFile = () => file.close().finally(() => disk?.release(staged))
  let isFinishing = false

  return {
    isLocal: false,
    write: frames.write,
    async finish(bytes) {
      await frames.finish()
      isFinishing = true
      await upload.finish()
      await closeFile()
      return openObject(key, { calls, frameKey, bytes })
    },
    async remove() {
      giveUp.abort()
      await frames.stop()
      await leaveToSweeper(upload.abort())
      // The object may exist although the answer of the store was lost.
      if (isFinishing) await leaveToSweeper(calls.remove(key, 'hasty'))
      await closeFile()
    },
  }
}

/** Opens an object that this or another process has written. */
export async function reopenSealedObject(
  key: string,
  contentKey: Buffer,
  { calls, bytes }: { calls: S3Calls; bytes: number },
): Promise<SealedContent> {
  const header = Buffer.alloc(objectHeaderBytes)
  await calls.get(key, 0, header, new AbortController().signal)
  return openObject(key, { calls, bytes, frameKey: openObjectKey(header, contentKey) })
}

function openObject(key: string, deps: { calls: S3Calls; frameKey: FrameKey; bytes: number }): SealedContent {
  const { calls, frameKey, bytes } = deps
  const released = new AbortController()
  return {
    async *read(start = 0, end = bytes) {
      released.signal.throwIfAborted()
      const ahead = makeReadAhead({ calls, key, bytes: Math.min(end, bytes), signal: released.signal })
      try {
        yield* readFrames({ frameKey, bytes, framesPerCall, fetch: ahead.fetch }, start, end)
      } finally {
        ahead.cancel()
      }
    },
    async remove() {
      released.abort()
      await leaveToSweeper(calls.remove(key, 'hasty'))
    },
    async close() {
      released.abort()
    },
    // The store has confirmed the object already.
    async sync() {},
  }
}

/** Opens a file that disappears with the process, however the process ends. */
async function openUnlinkedFile(dir: string) {
  await mkdir(dir, { recursive: true, mode: 0o700 })
  const path = join(dir, newUuid())
  const file = await open(path, 'wx+', 0o600)
  await unlink(path)
  return file
}

/** Ignores a removal that fails because the store is unavailable: the sweeper repeats it. */
async function leaveToSweeper(removal: Promise<void>) {
  await removal.catch((error) => {
    if (!(error instanceof StorageUnavailable)) throw error
  })
}

/** One call reads 1 MB, because a store takes some milliseconds for each call. */
const framesPerCall = 16

/**
 * Reads the sealed frames of an object, up to the clear length `bytes`. While the frames of one call are used, the next
 * call is under way: two buffers take turns. Many short calls keep the cost of a broken one low.
 */
function makeReadAhead(deps: { calls: S3Calls; key: string; bytes: number; signal: AbortSignal }) {
  const cancelled = new AbortController()
  const signal = AbortSignal.any([deps.signal, cancelled.signal])
  const frames = countFrames(deps.bytes)
  const buffers: [Buffer | undefined, Buffer | undefined] = [undefined, undefined]
  let turn: 0 | 1 = 0
  let next: { first: number; sealed: Promise<Buffer> } | undefined

  function begin(first: number) {
    const count = Math.min(framesPerCall, frames - first)
    turn = turn === 0 ? 1 : 0
    buffers[turn] ??= Buffer.allocUnsafeSlow(Math.min(framesPerCall, frames) * sealedFrameBytes)
    const into = buffers[turn]?.subarray(0, count * sealedFrameBytes) as Buffer
    const call = deps.calls.get(deps.key, toFrameOffset(first), into, signal)
    const sealed = call.then((filled) => into.subarray(0, filled))
    // The reader may stop before it asks for these frames.
    sealed.catch(() => {})
    return { first, sealed }
  }

  return {
    async fetch(first: number): Promise<Buffer> {
      const { sealed } = next?.first === first ? next : begin(first)
      const following = first + framesPerCall
      const ready = await sealed
      next = following < frames ? begin(following) : undefined
      return ready
    },
    cancel: () => cancelled.abort(),
  }
}

/** The least size that S3 accepts for every part but the last. Some stores want all parts to have the same size. */
export const partBytes = 5 * 1024 * 1024

/** The staging file of an upload holds two parts. */
const maxStagedBytes = 2 * partBytes

/**
 * Memory for the parts that are being sent, shared by all uploads of the process. An upload that needs a buffer waits
 * for one. The wait ends, because the holder of a buffer waits for the store alone, and calls to the store have a time
 * limit.
 */
export function makePartBuffers({ count, bytes }: { count: number; bytes: number }) {
  const free: Buffer[] = []
  const waiting: ((buffer: Buffer) => void)[] = []
  let allocated = 0

  const take = (): Buffer | Promise<Buffer> => {
    const buffer = free.pop()
    if (buffer !== undefined) return buffer
    if (allocated === count) return new Promise((resolve) => waiting.push(resolve))
    allocated++
    return Buffer.allocUnsafeSlow(bytes)
  }
  const release = (buffer: Buffer) => {
    const next = waiting.shift()
    if (next === undefined) free.push(buffer)
    else next(buffer)
  }

  return {
    /** Runs `work` with a buffer of the pool, and takes the buffer back when it ends. */
    async use<T>(work: (buffer: Buffer) => Promise<T>): Promise<T> {
      const buffer = await take()
      try {
        return await work(buffer)
      } finally {
        release(buffer)
      }
    },
    countWaiting: () => waiting.length,
  }
}

type PartBuffers = ReturnType<typeof makePartBuffers>

type PartUploadDeps = { calls: S3Calls; key: string; buffers: PartBuffers; file: FileHandle; signal: AbortSignal }

/**
 * Sends an object while it is still being written. Sealed parts are gathered in a file, because a slow client may take
 * minutes for one and there is no memory for all of them. While one part is sent, the next is gathered.
 */
function makePartUpload({ calls, key, buffers, file, signal }: PartUploadDeps) {
  const sending: [Promise<unknown>, Promise<unknown>] = [Promise.resolve(), Promise.resolve()]
  const parts: Part[] = []
  let upload: ReturnType<S3Calls['startUpload']> | undefined
  /** The number of parts that are complete; also the index of the part that is being gathered. */
  let completeParts = 0
  let filled = 0

  /** Parts alternate between the two halves of the file. */
  const toHalf = (part: number) => (part % 2) as 0 | 1

  async function readPart(into: Buffer, part: number, bytes: number): Promise<Buffer> {
    const { bytesRead } = await file.read(into, 0, bytes, toHalf(part) * partBytes)
    if (bytesRead !== bytes) throw new Error('A part of an upload could not be read from the staging file')
    return into.subarray(0, bytes)
  }

  function sendPart(part: number, bytes: number) {
    upload ??= calls.startUpload(key)
    const startedUpload = upload
    const sent = buffers.use(async (buffer) => {
      signal.throwIfAborted()
      parts[part] = await calls.putPart(await startedUpload, part + 1, await readPart(buffer, part, bytes), signal)
    })
    // A failure is reported when the half of the file is needed again, or by `finish`.
    sent.catch(() => {})
    startedUpload.catch(() => {})
    sending[toHalf(part)] = sent
  }

  return {
    /** Must be called in order, and not again before the last call resolved. */
    async append(batch: Buffer[]): Promise<void> {
      for (let rest = batch; rest.length > 0; ) {
        if (filled === partBytes) {
          sendPart(completeParts, filled)
          completeParts++
          filled = 0
          await sending[toHalf(completeParts)]
        }
        const { fitting, remainder } = split(rest, partBytes - filled)
        await writeAll(file, fitting, toHalf(completeParts) * partBytes + filled)
        filled += countBytes(fitting)
        rest = remainder
      }
    },
    /** Resolves when the store has the object. */
    async finish(): Promise<void> {
      if (upload === undefined) {
        await buffers.use(async (buffer) => calls.put(key, await readPart(buffer, 0, filled), signal))
        return
      }
      sendPart(completeParts, filled)
      await Promise.all(sending)
      await calls.completeUpload(await upload, parts, completeParts * partBytes + filled)
    },
    /** Removes the parts that were sent. The caller aborts `signal` first. */
    async abort(): Promise<void> {
      await Promise.allSettled(sending)
      const startedUpload = await upload?.catch(() => undefined)
      if (startedUpload !== undefined) await calls.abortUpload(startedUpload, 'hasty')
    },
  }
}

function split(batch: Buffer[], bytes: number): { fitting: Buffer[]; remainder: Buffer[] } {
  let space = bytes
  for (const [index, piece] of batch.entries()) {
    if (piece.length > space) {
      const cut = space === 0 ? [] : [piece.subarray(0, space)]
      return {
        fitting: [...batch.slice(0, index), ...cut],
        remainder: [piece.subarray(space), ...batch.slice(index + 1)],
      }
    }
    space -= piece.length
  }
  return { fitting: batch, remainder: [] }
}

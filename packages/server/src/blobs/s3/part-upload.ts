import type { FileHandle } from 'node:fs/promises'
import { countBytes, writeAll } from '../disk-space.ts'
import type { Part, S3Calls } from './s3-calls.ts'

/** The least size that S3 accepts for every part but the last. Some stores want all parts to have the same size. */
export const partBytes = 5 * 1024 * 1024

/** The staging file of an upload holds two parts. */
export const maxStagedBytes = 2 * partBytes

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

export type PartBuffers = ReturnType<typeof makePartBuffers>

type Deps = { calls: S3Calls; key: string; buffers: PartBuffers; file: FileHandle; signal: AbortSignal }

/**
 * Sends an object while it is still being written. Sealed parts are gathered in a file, because a slow client may take
 * minutes for one and there is no memory for all of them. While one part is sent, the next is gathered.
 */
export function makePartUpload({ calls, key, buffers, file, signal }: Deps) {
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

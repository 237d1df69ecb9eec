import type { FileHandle } from 'node:fs/promises'
import { countBytes, writeAll } from '../write-all.ts'
import type { PartBuffers } from './part-buffers.ts'
import type { Part, S3Calls } from './s3-calls.ts'

/** The least that S3 accepts for any part but the last. Some stores want all of them alike. */
export const partBytes = 5 * 1024 * 1024

/** The file has room for two. */
export const maxStagedBytes = 2 * partBytes

type Deps = { calls: S3Calls; key: string; buffers: PartBuffers; file: FileHandle; signal: AbortSignal }

/**
 * Sends an object while it is still being written. A part is gathered in a file, sealed, because a slow client may take
 * minutes for it, and memory for all of them there is not. The file has room for two: one is sent, the next is gathered.
 */
export function makePartUpload({ calls, key, buffers, file, signal }: Deps) {
  const sending: [Promise<unknown>, Promise<unknown>] = [Promise.resolve(), Promise.resolve()]
  const parts: Part[] = []
  let upload: ReturnType<S3Calls['startUpload']> | undefined
  /** Parts that were gathered before this one. */
  let gathered = 0
  let filled = 0

  const toSlot = (part: number) => (part % 2) as 0 | 1

  async function readPart(into: Buffer, part: number, bytes: number): Promise<Buffer> {
    const { bytesRead } = await file.read(into, 0, bytes, toSlot(part) * partBytes)
    if (bytesRead !== bytes) throw new Error('A part of an upload could not be read again')
    return into.subarray(0, bytes)
  }

  function sendPart(part: number, bytes: number) {
    upload ??= calls.startUpload(key)
    const begun = upload
    const sent = buffers.lend(async (buffer) => {
      signal.throwIfAborted()
      parts[part] = await calls.putPart(await begun, part + 1, await readPart(buffer, part, bytes), signal)
    })
    // Whoever waits for the room it takes learns of a failure.
    sent.catch(() => {})
    begun.catch(() => {})
    sending[toSlot(part)] = sent
  }

  return {
    /** In order, one call at a time. */
    async append(batch: Buffer[]): Promise<void> {
      for (let rest = batch; rest.length > 0; ) {
        if (filled === partBytes) {
          sendPart(gathered, filled)
          gathered++
          filled = 0
          await sending[toSlot(gathered)]
        }
        const { fitting, left } = split(rest, partBytes - filled)
        await writeAll(file, fitting, toSlot(gathered) * partBytes + filled)
        filled += countBytes(fitting)
        rest = left
      }
    },
    /** Until the store has the object. */
    async finish(): Promise<void> {
      if (upload === undefined) {
        await buffers.lend(async (buffer) => calls.put(key, await readPart(buffer, 0, filled), signal))
        return
      }
      sendPart(gathered, filled)
      await Promise.all(sending)
      await calls.completeUpload(await upload, parts, gathered * partBytes + filled)
    },
    /** After `signal` was aborted: nothing of it stays, whatever was sent by then. */
    async abort(): Promise<void> {
      await Promise.allSettled(sending)
      const begun = await upload?.catch(() => undefined)
      if (begun !== undefined) await calls.abortUpload(begun, 'hasty')
    },
  }
}

function split(batch: Buffer[], bytes: number): { fitting: Buffer[]; left: Buffer[] } {
  let room = bytes
  for (const [index, piece] of batch.entries()) {
    if (piece.length > room) {
      const cut = room === 0 ? [] : [piece.subarray(0, room)]
      return { fitting: [...batch.slice(0, index), ...cut], left: [piece.subarray(room), ...batch.slice(index + 1)] }
    }
    room -= piece.length
  }
  return { fitting: batch, left: [] }
}

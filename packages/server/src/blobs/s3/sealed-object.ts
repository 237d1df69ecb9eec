import { mkdir, open, unlink } from 'node:fs/promises'
import { join } from 'node:path'
import { v7 as newUuid } from 'uuid'
import { StorageUnavailable } from '../../domain/ports/content-store.ts'
import { toRoomProblem } from '../disk-room.ts'
import { readFrames } from '../frame-reader.ts'
import { makeFrameWriter } from '../frame-writer.ts'
import type { FrameKey } from '../frames.ts'
import type { MasterKey } from '../master-key.ts'
import { newObjectKey, objectHeaderBytes, openObjectKey } from '../object-key.ts'
import type { FileBounds, SealedContent, SealedWriter } from '../sealed-file.ts'
import { countBytes } from '../write-all.ts'
import type { PartBuffers } from './part-buffers.ts'
import { makePartUpload, maxStagedBytes } from './part-upload.ts'
import { framesPerCall, makeReadAhead } from './read-ahead.ts'
import type { S3Calls } from './s3-calls.ts'

type Deps = { calls: S3Calls; master: MasterKey; buffers: PartBuffers; stagingDir: string } & FileBounds

/** An object of the store, in the same form as a sealed file: the wrapped key, then frames. */
export async function createSealedObject(key: string, deps: Deps): Promise<SealedWriter> {
  const { calls, buffers, room, memory } = deps
  const { frameKey, header } = newObjectKey(deps.master)
  room?.requireSome()
  const file = await openNameless(deps.stagingDir).catch((error) => {
    throw toRoomProblem(error)
  })
  const giveUp = new AbortController()
  const upload = makePartUpload({ calls, key, buffers, file, signal: giveUp.signal })
  let staged = 0
  const append = (batch: Buffer[]) => {
    // The file is used again and again, and grows no further than this.
    const grows = Math.min(countBytes(batch), maxStagedBytes - staged)
    if (grows > 0) room?.take(grows)
    staged += grows
    return upload.append(batch)
  }
  const frames = makeFrameWriter({ frameKey, header, put: append, memory })
  const closeFile = () => file.close().finally(() => room?.release(staged))
  let isEnding = false

  return {
    isNear: false,
    write: frames.write,
    async finish(bytes) {
      await frames.finish()
      isEnding = true
      await upload.finish()
      await closeFile()
      return openObject(key, { calls, frameKey, bytes })
    },
    async remove() {
      giveUp.abort()
      await frames.complete()
      await leaveToSweeper(upload.abort())
      // It may be there although we were told nothing.
      if (isEnding) await leaveToSweeper(calls.remove(key, 'hasty'))
      await closeFile()
    },
  }
}

/** One that was written before, by this process or another. */
export async function reopenSealedObject(key: string, bytes: number, { calls, master }: Deps): Promise<SealedContent> {
  const header = Buffer.alloc(objectHeaderBytes)
  await calls.get(key, 0, header, new AbortController().signal)
  return openObject(key, { calls, bytes, frameKey: openObjectKey(header, master) })
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
    // The store answered that it has it.
    async sync() {},
  }
}

/** A file that is gone when the process is, however that ends. */
async function openNameless(dir: string) {
  await mkdir(dir, { recursive: true, mode: 0o700 })
  const path = join(dir, newUuid())
  const file = await open(path, 'wx+', 0o600)
  await unlink(path)
  return file
}

/** What nobody needs is no reason to fail, or to let somebody wait: it is found and removed later. */
async function leaveToSweeper(removal: Promise<void>) {
  await removal.catch((error) => {
    if (!(error instanceof StorageUnavailable)) throw error
  })
}

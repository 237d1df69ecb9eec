import type { Writable } from 'node:stream'
import { setFlagsFromString } from 'node:v8'
import { openSystemLibrary } from './process.ts'

/** Other versions of V8 than 13 do not know the flag and would print an error. */
let needsFlag = process.versions.v8.startsWith('13.')

/**
 * Lets the memory of buffers raise the limit at which V8 collects all garbage, as later versions of V8 do by themselves.
 * Without it, every 10 to 15 MB of content in memory cost a full collection, which frees nothing: half of the processor
 * time of an upload of 100 MB. Call it when such memory is needed: with a flag, V8 compiles all modules of Node that are
 * loaded afterwards, and a start would take twice as long to load them.
 */
export function raiseLimitWithBuffers() {
  if (needsFlag) setFlagsFromString('--external-memory-accounted-in-global-limit')
  needsFlag = false
}

type Detachable = ArrayBuffer & { transfer(bytes: number): ArrayBuffer }

const minFreedBytes = 16 * 1024

/** Whether the buffer is all of its memory, so that no other buffer can be a part of it. */
export const isWholeMemory = ({ buffer, byteLength }: Buffer): boolean => byteLength === buffer.byteLength

/**
 * Frees the memory of a buffer at once; the buffer is empty afterwards. The garbage collector sees only the small
 * object in front of that memory, so it runs late and long: with content of 10 MB it took more than half of the
 * service's time and twice the memory. A buffer that shares its memory with others is left alone.
 */
export function freeBuffer(buffer: Buffer) {
  const memory = buffer.buffer as Detachable
  if (memory.byteLength >= minFreedBytes && isWholeMemory(buffer)) memory.transfer(0)
}

/** Frees the whole memory that a buffer is a part of. Call it only when no other buffer uses that memory. */
export function freeMemory(buffer: Buffer) {
  const memory = buffer.buffer as Detachable
  // Memory of this size may be the pool from which Node takes all small buffers.
  if (memory.byteLength === Buffer.poolSize) freeBuffer(buffer)
  else if (memory.byteLength >= minFreedBytes) memory.transfer(0)
}

/** Returns memory to the system that glibc keeps for later allocations. Takes a few milliseconds. */
export function returnUnusedMemory() {
  openSystemLibrary().library.func('int malloc_trim(size_t bytesToKeep)')(0)
}

/**
 * Resolves when the stream takes more, when it is closed, and at once when it was closed before. `others` are further
 * events of the stream that end the wait.
 */
export async function waitForRoom(stream: Writable, others: string[] = []): Promise<void> {
  if (stream.destroyed) return
  const names = ['drain', 'close', ...others]
  await new Promise<void>((resolve) => {
    const done = () => {
      for (const name of names) stream.off(name, done)
      resolve()
    }
    for (const name of names) stream.on(name, done)
  })
}

import { readSync, writeSync } from 'node:fs'
import { frameHeadBytes, frameKinds, type Job, jobPipe, memberPipe } from '../frames.ts'

export type ServicePipe = ReturnType<typeof openService>

const outputBytes = 256 * 1024
const maxJobBytes = 65_536

/**
 * Blocking on purpose: 7-Zip wants its bytes now, and must not run ahead of the service. Whatever goes wrong with a
 * pipe means that the service is gone.
 */
export function openService() {
  const output = Buffer.allocUnsafe(outputBytes)
  let held = 0

  function flush() {
    writeAll(output.subarray(0, held))
    held = 0
  }

  function send(kind: keyof typeof frameKinds, payload: Uint8Array) {
    if (held + frameHeadBytes + payload.length > output.length) flush()
    output[held] = frameKinds[kind]
    output.writeUInt32LE(payload.length, held + 1)
    held += frameHeadBytes
    if (held + payload.length > output.length) {
      flush()
      writeAll(payload)
      return
    }
    output.set(payload, held)
    held += payload.length
  }

  return {
    send,
    flush,
    /** Undefined when there will be no more. */
    nextJob(): Job | undefined {
      const length = Buffer.alloc(4)
      if (!readAll(length)) return undefined
      if (length.readUInt32LE(0) > maxJobBytes) throw new Error('A job of impossible length')
      const job = Buffer.alloc(length.readUInt32LE(0))
      return readAll(job) ? JSON.parse(job.toString()) : undefined
    },
    /** Bytes of the container, from the service. */
    read(start: number, length: number): Buffer {
      const range = Buffer.alloc(12)
      range.writeBigUInt64LE(BigInt(start), 0)
      range.writeUInt32LE(length, 8)
      send('read', range)
      flush()
      const bytes = Buffer.allocUnsafeSlow(length)
      if (!readAll(bytes)) process.exit(0)
      return bytes
    },
  }
}

function readAll(into: Buffer): boolean {
  for (let at = 0; at < into.length; ) {
    const got = patiently(() => readSync(jobPipe, into, at, into.length - at, null))
    if (got === 0) return false
    at += got
  }
  return true
}

function writeAll(bytes: Uint8Array) {
  for (let at = 0; at < bytes.length; ) at += patiently(() => writeSync(memberPipe, bytes, at, bytes.length - at))
}

/** The pipes block; should one not, asking again in a millisecond is as good. */
function patiently(act: () => number): number {
  for (;;) {
    try {
      return act()
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== 'EAGAIN') process.exit(0)
      Atomics.wait(pause, 0, 0, 1)
    }
  }
}

const pause = new Int32Array(new SharedArrayBuffer(4))

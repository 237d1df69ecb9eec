import { readSync, writeSync } from 'node:fs'
import { abandoned, endOfBody, maxHeaderBytes, toFrame } from './wire.ts'

const pipe = 3
const keptRoomBytes = 4 * 1024 * 1024
const maxBodyBytes = 1024 * 1024 * 1024

/** The body is undefined when it was abandoned on the way, and shorter than announced when it came so. */
export type Received<Request> = { request: Request; body: Buffer | undefined }

/**
 * Reads and answers on the pipe, and waits while doing so: a process that does one thing needs no events, and bytes go
 * straight to their place.
 */
export function makeRequests<Request extends object, Answer extends object>() {
  let room = Buffer.allocUnsafeSlow(65_536)
  let borrowed: Buffer<ArrayBuffer> | undefined

  const getRoom = (bytes: number) => {
    if (bytes <= room.length) return room
    const larger = Buffer.allocUnsafeSlow(bytes)
    if (bytes <= keptRoomBytes) room = larger
    else borrowed = larger
    return larger
  }

  /** At once: while this process waits for the next request, no garbage collector comes by. */
  const release = () => {
    borrowed?.buffer.transfer(0)
    borrowed = undefined
  }

  return {
    /** The next one, or undefined when the other side is gone. The body is good until then. */
    read(): Received<Request> | undefined {
      release()
      const headerBytes = readLength()
      if (headerBytes === undefined) return undefined
      if (headerBytes > maxHeaderBytes) throw new Error(`A header of ${headerBytes} bytes`)
      const request: Request = JSON.parse(readInto(Buffer.allocUnsafe(headerBytes), 0, headerBytes).toString('utf8'))
      const announced = 'bytes' in request ? Number(request.bytes) : 0
      if (announced > maxBodyBytes) throw new Error(`A body of ${announced} bytes`)
      const target = getRoom(announced)
      let bytes = 0
      for (;;) {
        const chunkBytes = readLength()
        if (chunkBytes === undefined) return undefined
        if (chunkBytes === abandoned) return { request, body: undefined }
        if (chunkBytes === endOfBody) return { request, body: target.subarray(0, bytes) }
        if (bytes + chunkBytes > announced) throw new Error('More bytes than were announced')
        readInto(target, bytes, chunkBytes)
        bytes += chunkBytes
      }
    },
    answer(answer: Answer) {
      const frame = toFrame(answer)
      for (let done = 0; done < frame.length; ) done += writeSync(pipe, frame, done)
    },
  }
}

function readLength(): number | undefined {
  const length = Buffer.allocUnsafe(4)
  const first = readSync(pipe, length, 0, 4, null)
  if (first === 0) return undefined
  return readInto(length, first, 4 - first).readUInt32LE(0)
}

function readInto(target: Buffer, start: number, bytes: number): Buffer {
  for (let done = 0; done < bytes; ) {
    const read = readSync(pipe, target, start + done, bytes - done, null)
    if (read === 0) throw new Error('The pipe ended within a message')
    done += read
  }
  return target
}

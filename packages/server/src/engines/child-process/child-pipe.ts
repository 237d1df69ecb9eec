import { readSync, writeSync } from 'node:fs'
import { type FrameKind, frameHeadBytes, frameKinds, maxRequestBytes } from './frames.ts'

const socket = 3
const outputBytes = 256 * 1024
const keptBodyBytes = 4 * 1024 * 1024
const maxBodyBytes = 1024 * 1024 * 1024

/** The body is undefined when the service abandoned it, and shorter than announced when it arrived so. */
export type Received<Request> = { request: Request; body: Buffer | undefined }

export type ChildPipe<Request, Answer> = {
  /**
   * The next request, or undefined when the service has closed the socket. A request with a body announces its length
   * as `bytes`. The body is valid until the next call.
   */
  readRequest(): Received<Request> | undefined
  /** Buffers a frame; `answer` and `fetch` send what is buffered. */
  send(kind: FrameKind, payload: Uint8Array): void
  /** Asks the service for bytes of the content that the request names. */
  fetch(start: number, length: number): Buffer
  answer(answer: Answer): void
}

/**
 * The child's end of the socket. Reads and writes block: the child does one thing at a time, received bytes go straight
 * to their place, and a child that sends must not run ahead of the service. When the socket fails, the service is gone
 * and the child exits.
 */
export function openChildPipe<Request extends object, Answer extends object>(): ChildPipe<Request, Answer> {
  const output = makeOutput()
  const bodyBuffer = makeBodyBuffer()

  return {
    readRequest() {
      bodyBuffer.free()
      const head = Buffer.allocUnsafe(frameHeadBytes)
      const bytes = readHead(head)
      if (bytes === undefined) return undefined
      if (head[0] !== frameKinds.request || bytes > maxRequestBytes) throw new Error(`Not a request: ${bytes} bytes`)
      const request: Request = JSON.parse(readInto(Buffer.allocUnsafe(bytes), 0, bytes).toString('utf8'))
      const announced = 'bytes' in request ? Number(request.bytes) : 0
      if (announced > maxBodyBytes) throw new Error(`A body of ${announced} bytes`)
      return { request, body: readBody(bodyBuffer.get(announced), announced) }
    },
    send: output.send,
    fetch(start, length) {
      const range = Buffer.alloc(12)
      range.writeBigUInt64LE(BigInt(start), 0)
      range.writeUInt32LE(length, 8)
      output.send('read', range)
      output.flush()
      const bytes = Buffer.allocUnsafeSlow(length)
      readData(bytes)
      return bytes
    },
    answer(answer) {
      output.send('answer', Buffer.from(JSON.stringify(answer)))
      output.flush()
    },
  }
}

function readBody(target: Buffer, announced: number): Buffer | undefined {
  const head = Buffer.allocUnsafe(frameHeadBytes)
  for (let done = 0; ; ) {
    const bytes = readHead(head) ?? exit()
    if (head[0] === frameKinds.abandon) return undefined
    if (head[0] === frameKinds.end) return target.subarray(0, done)
    if (head[0] !== frameKinds.data || done + bytes > announced) throw new Error('The body is longer than announced')
    readInto(target, done, bytes)
    done += bytes
  }
}

function readData(target: Buffer) {
  const head = Buffer.allocUnsafe(frameHeadBytes)
  const bytes = readHead(head) ?? exit()
  if (head[0] !== frameKinds.data || bytes !== target.length) throw new Error(`${bytes} bytes for ${target.length}`)
  readInto(target, 0, bytes)
}

/** Frames that fit are collected, because a container may hold thousands of small members. */
function makeOutput() {
  const buffer = Buffer.allocUnsafe(outputBytes)
  let bufferedBytes = 0

  function flush() {
    writeAll(buffer.subarray(0, bufferedBytes))
    bufferedBytes = 0
  }

  function send(kind: FrameKind, payload: Uint8Array) {
    if (bufferedBytes + frameHeadBytes + payload.length > buffer.length) flush()
    buffer[bufferedBytes] = frameKinds[kind]
    buffer.writeUInt32LE(payload.length, bufferedBytes + 1)
    bufferedBytes += frameHeadBytes
    if (bufferedBytes + payload.length > buffer.length) {
      flush()
      writeAll(payload)
      return
    }
    buffer.set(payload, bufferedBytes)
    bufferedBytes += payload.length
  }

  return { send, flush }
}

/** Memory for bodies. Up to 4 MB it is kept for the next request. */
function makeBodyBuffer() {
  let keptBuffer = Buffer.allocUnsafeSlow(65_536)
  let largeBuffer: Buffer<ArrayBuffer> | undefined
  return {
    get(bytes: number): Buffer {
      if (bytes <= keptBuffer.length) return keptBuffer
      const buffer = Buffer.allocUnsafeSlow(bytes)
      if (bytes <= keptBodyBytes) keptBuffer = buffer
      else largeBuffer = buffer
      return buffer
    },
    /** Frees a large body at once: the garbage collector does not run while the child waits for the next request. */
    free() {
      largeBuffer?.buffer.transfer(0)
      largeBuffer = undefined
    },
  }
}

/** The length of the payload; undefined when the socket has ended. */
function readHead(head: Buffer): number | undefined {
  const first = retry(() => readSync(socket, head, 0, frameHeadBytes, null))
  if (first === 0) return undefined
  return readInto(head, first, frameHeadBytes - first).readUInt32LE(1)
}

function readInto(target: Buffer, start: number, bytes: number): Buffer {
  for (let done = 0; done < bytes; ) {
    const read = retry(() => readSync(socket, target, start + done, bytes - done, null))
    if (read === 0) exit()
    done += read
  }
  return target
}

function writeAll(bytes: Uint8Array) {
  for (let done = 0; done < bytes.length; ) done += retry(() => writeSync(socket, bytes, done, bytes.length - done))
}

/** The socket blocks; should it not, the call is repeated after a millisecond. */
function retry(call: () => number): number {
  for (;;) {
    try {
      return call()
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== 'EAGAIN') exit()
      Atomics.wait(pause, 0, 0, 1)
    }
  }
}

const pause = new Int32Array(new SharedArrayBuffer(4))

function exit(): never {
  process.exit(0)
}

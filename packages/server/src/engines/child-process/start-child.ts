import { type ChildProcess, spawn } from 'node:child_process'
import type { Duplex, Readable } from 'node:stream'
import { waitForRoom } from '../../runtime/memory.ts'
import { startAwakeTimer } from '../../runtime/timers.ts'
import { isEscape } from '../jail/policy.ts'
import { stallMs as defaultStallMs } from './engine-options.ts'
import { type Frame, frameHeadBytes, frameKinds, maxAnswerBytes, maxDataBytes, toFrameHead } from './frames.ts'
import type { Launch } from './node-launch.ts'
import { type ResourceLimits, watchResources, watchStalls } from './resource-watch.ts'
import { sendBody } from './send-body.ts'

/** The child ended by itself, or another process killed it. */
export class ProcessDied extends Error {}
/** The child used more memory or processor time than allowed, and was killed. */
export class LimitExceeded extends Error {}
/**
 * The child did not answer in time, or used no processor time while its answer was awaited, and was killed. It may be
 * stopped, or the machine too busy, so this says nothing of the content.
 */
export class ProcessHung extends ProcessDied {}

/** The resources are watched until the answer. */
type RequestLimits = ResourceLimits & {
  sendMs: number
  answerMs: number
  /** The chunks of the body belong to this request, which frees each when the system has taken it. */
  ownsChunks?: boolean
  /** Ends the sending of the body. A child that has all of it is waited for. */
  signal?: AbortSignal
}

/** A child process that answers one request at a time. */
export type Child = {
  readonly pid: number | undefined
  /**
   * Sends a request and its body, and returns the answer. When the body cannot be sent (`signal`, a failing read,
   * `sendMs`) this throws the reason, and the child stays usable. A child that exceeds a limit is killed.
   */
  sendRequest<Answer>(request: object, body: Buffer | AsyncIterable<Buffer>, limits: RequestLimits): Promise<Answer>
  /** Sends a request without a body; `readFrame` then gives the frames up to the answer. */
  post(request: object): Promise<void>
  /** Undefined when the child is dead. */
  readFrame(): Promise<Frame | undefined>
  /** Resolves when there is room for more, or when the child is dead. */
  sendData(bytes: Buffer): Promise<void>
  /** True as soon as the child is of no more use, a moment before it has ended. */
  isDead(): boolean
  /**
   * True when the last answer was marked `needsReplacement`: the child holds so much memory that it should be replaced.
   */
  needsReplacement(): boolean
  /** Resolves when the process has ended. */
  ended: Promise<void>
  /** True after the end of a child that the filter of its jail killed. */
  hasEscaped(): boolean
  /** Lets the child finish its request and exit by itself. */
  end(): void
  kill(): void
}

type ChildOptions = {
  onEscape?(): void
  /** A child that uses no processor time for this long while its answer is awaited is killed. */
  stallMs?: number
}

/** Starts a program that serves `openChildPipe`. The program gets nothing of the service's environment but PATH. */
export function startChild(name: string, launch: Launch, options: ChildOptions = {}): Child {
  const { onEscape, stallMs } = { stallMs: defaultStallMs, ...options }
  const process = spawnWithSocket(launch)
  const socket = process.stdio[3] as Duplex
  const death = watchDeath(name, process, socket)
  const frames = readChildFrames(socket, (cause) =>
    death.declare(new Error(`The ${name} sent an invalid frame`, { cause })),
  )
  const stalls = watchStalls(process.pid, {
    stallMs,
    isAwaited: () => frames.isAwaited() || socket.writableNeedDrain,
    countFrames: frames.count,
    onStalled: () => death.declare(new ProcessHung(`The ${name} used no processor time for ${stallMs} ms`)),
  })
  void death.ended.then(() => {
    stalls.stop()
    if (isEscape(process.signalCode)) onEscape?.()
  })
  let isBusy = false

  async function readAnswer<Answer>(): Promise<Answer> {
    const frame = await frames.read()
    if (frame === undefined) throw await death.reason
    if (frame.kind === frameKinds.answer) return frame.answer as Answer
    const error = new Error(`The ${name} sent a frame of kind ${frame.kind} for an answer`)
    death.declare(error)
    throw error
  }

  async function sendRequest<Answer>(request: object, body: Buffer | AsyncIterable<Buffer>, limits: RequestLimits) {
    const { sendMs, answerMs, signal, ownsChunks = false } = limits
    const resources = watchResources(process.pid, limits, (limit) =>
      death.declare(new LimitExceeded(`The ${name} exceeded its limit of ${limit}`)),
    )
    const declareOverdue = () => death.declare(new ProcessHung(`The ${name} did not answer within ${answerMs} ms`))
    let timer: ReturnType<typeof startAwakeTimer> | undefined
    try {
      socket.cork()
      writeRequest(socket, request)
      const signals = signal ? [death.signal, signal] : [death.signal]
      const failure = await sendBody(socket, body, { ms: sendMs, signals, ownsChunks })
      socket.write(toFrameHead(failure === undefined ? 'end' : 'abandon', 0))
      socket.uncork()
      timer = startAwakeTimer(answerMs, declareOverdue)
      const answer = await readAnswer<Answer>()
      if (failure !== undefined) throw failure.error
      return answer
    } finally {
      timer?.stop()
      resources.stop()
    }
  }

  return {
    pid: process.pid,
    async sendRequest(request, body, limits) {
      if (isBusy) throw new Error(`The ${name} got a second request before its answer`)
      // The child died during an earlier request, so the reason of its death does not concern this one.
      if (death.signal.aborted) throw new ProcessDied(`The ${name} is dead`)
      isBusy = true
      return sendRequest<never>(request, body, limits).finally(() => {
        isBusy = false
      })
    },
    async post(request) {
      socket.cork()
      writeRequest(socket, request)
      socket.write(toFrameHead('end', 0))
      await flush(socket)
    },
    readFrame: frames.read,
    async sendData(bytes) {
      socket.cork()
      socket.write(toFrameHead('data', bytes.length))
      socket.write(bytes)
      await flush(socket)
    },
    isDead: () => death.signal.aborted,
    needsReplacement: frames.needsReplacement,
    ended: death.ended,
    hasEscaped: () => isEscape(process.signalCode),
    end: () => socket.end(),
    kill: () => death.declare(new ProcessDied(`The ${name} was ended`)),
  }
}

/** Reads the frames of a child, and parses its answers. An invalid frame ends the reading. */
function readChildFrames(socket: Duplex, onInvalid: (cause: unknown) => void) {
  const readNext = readFrames(socket)
  let awaited = 0
  let count = 0
  let needsReplacement = false
  return {
    async read(): Promise<Frame | undefined> {
      awaited++
      try {
        const frame = await readNext()
        count++
        if (frame?.kind !== frameKinds.answer) return frame
        const answer = JSON.parse(frame.payload.toString('utf8'))
        needsReplacement = answer.needsReplacement === true
        return { ...frame, answer }
      } catch (cause) {
        onInvalid(cause)
        return undefined
      } finally {
        awaited--
      }
    },
    isAwaited: () => awaited > 0,
    count: () => count,
    needsReplacement: () => needsReplacement,
  }
}

const spawnWithSocket = ({ command, args, env }: Launch) =>
  spawn(command, args, {
    cwd: '/',
    env: { PATH: process.env.PATH, ...env },
    stdio: ['ignore', 'ignore', 'pipe', 'pipe'],
  })

function writeRequest(socket: Duplex, request: object) {
  const json = Buffer.from(JSON.stringify(request))
  socket.write(toFrameHead('request', json.length))
  socket.write(json)
}

/** Sends what is corked, in one system call. Resolves when there is room for more, or when the child is dead. */
async function flush(socket: Duplex) {
  socket.uncork()
  if (socket.writableNeedDrain) await waitForRoom(socket)
}

/**
 * `signal` is aborted, and `reason` resolves, as soon as the child is of no more use; `ended` when the process is gone.
 */
function watchDeath(name: string, child: ChildProcess, socket: Duplex) {
  const dead = new AbortController()
  const { promise: ended, resolve: end } = Promise.withResolvers<void>()
  const { promise: reason, resolve: resolveReason } = Promise.withResolvers<Error>()
  let stderr = ''
  const declare = (error: Error) => {
    if (!dead.signal.aborted) dead.abort(error)
    resolveReason(error)
    child.kill('SIGKILL')
    socket.destroy()
  }
  child.stderr?.setEncoding('utf8').on('data', (text: string) => {
    stderr = (stderr + text).slice(-2000)
  })
  child.once('error', (error) => {
    declare(new ProcessDied(`The ${name} did not start: ${error.message}`, { cause: error }))
    if (child.pid === undefined) end()
  })
  // 'close' comes after all output of the child is read; 'exit' may come before.
  child.once('close', (code, by) => {
    declare(new ProcessDied(`The ${name} ended with ${by ?? code}. ${stderr.trim()}`.trim()))
    end()
  })
  socket.on('error', () => {})
  return { signal: dead.signal, reason, ended, declare }
}

/**
 * Reads frames from a child on demand. The socket is paused while no frame is wanted, so that a child which writes
 * faster than the service reads has to wait.
 */
function readFrames(socket: Readable) {
  let buffered: Buffer[] = []
  let bufferedBytes = 0
  let hasEnded = false
  let wake: (() => void) | undefined
  socket.on('data', (chunk: Buffer) => {
    buffered.push(chunk)
    bufferedBytes += chunk.length
    if (wake === undefined) socket.pause()
    else wake()
  })
  socket.on('close', () => {
    hasEnded = true
    wake?.()
  })

  /** Returns the next bytes, of which enough are buffered. */
  function take(bytes: number): Buffer {
    const all = buffered.length === 1 ? (buffered[0] as Buffer) : Buffer.concat(buffered)
    // A reader may free memory that its payload fills, so no buffered chunk may share that memory, not even at its end.
    buffered = all.length === bytes ? [] : [all.subarray(bytes)]
    bufferedBytes = all.length - bytes
    return all.subarray(0, bytes)
  }

  /** Waits until that many bytes are buffered. False when the socket has ended before. */
  async function fill(bytes: number): Promise<boolean> {
    while (bufferedBytes < bytes) {
      if (hasEnded) return false
      await new Promise<void>((resolve) => {
        wake = resolve
        if (socket.isPaused()) socket.resume()
      })
      wake = undefined
    }
    return true
  }

  /** Undefined when the socket has ended. Throws when the child sends an invalid frame. */
  return async function readFrame(): Promise<Frame | undefined> {
    if (bufferedBytes < frameHeadBytes && !(await fill(frameHeadBytes))) return undefined
    const head = take(frameHeadBytes)
    const kind = head[0] ?? 0
    const bytes = head.readUInt32LE(1)
    if (bytes > (kind === frameKinds.answer ? maxAnswerBytes : maxDataBytes))
      throw new Error(`A frame of ${bytes} bytes`)
    if (bufferedBytes < bytes && !(await fill(bytes))) return undefined
    return { kind, payload: take(bytes) }
  }
}

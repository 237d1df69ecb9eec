import type { Socket } from 'node:net'
import { availableParallelism } from 'node:os'
import type { Content } from '../../domain/content/content.ts'
import { EngineBusy, type Work } from '../../domain/ports/engines.ts'
import { makeSemaphore } from '../../domain/semaphore.ts'
import { connectTo, type ServerAddress } from '../../runtime/node-http.ts'
import { acceptReply, endOfStream, maxReplyLength, sendCommand, streamToClamd, toEngineDown } from './connection.ts'

/** Content up to this size uses a kept connection; larger content takes so long to scan that it makes no difference. */
const sessionBytes = 256 * 1024

/** More than clamd has threads (compose/malware.ts), so that the next scan is there when a thread becomes free. */
export const sessionCount = Math.max(16, 4 * availableParallelism())

type ClientDeps = {
  address: ServerAddress
  /** The process of clamd; undefined for one that the operator runs, whose processor time is not known. */
  findPid?(): number | undefined
  /** Kept connections, at most; undefined for as many as the clamd of Assay needs. */
  sessionCount?: number
  /** False keeps content in this process, for a clamd whose address has secrets. */
  sendsFromOwner?: false
}

/** Sends content and commands to clamd, and returns its replies unchanged; `toReport` interprets them. */
export function makeClamdClient(deps: ClientDeps) {
  const sessions = makeSessions({ ...deps, count: deps.sessionCount ?? sessionCount })

  return {
    scan(content: Content, work: Work): Promise<string> {
      const { whole, bytes } = content
      const sendFromOwner = deps.sendsFromOwner === false ? undefined : content.sendFromOwner
      if (whole !== undefined && whole.length <= sessionBytes) return sessions.scan(whole, work)
      const send = () =>
        sendFromOwner === undefined
          ? streamToClamd(deps.address, content, work.signal)
          : sendFromOwner(deps.address, work.signal)
      // Content of another process has a connection of its own at any size; small content still waits for its turn.
      if (sendFromOwner !== undefined && bytes <= sessionBytes) return sessions.run(send, work)
      return sendCounted(send, deps, work)
    },
    /** Scans a few bytes outside of any scan of a caller. */
    probe: (bytes: Buffer, timeoutMs: number) => sessions.scan(bytes, { signal: AbortSignal.timeout(timeoutMs) }),
    sendCommand: (command: 'PING' | 'VERSION' | 'RELOAD', timeoutMs: number) =>
      sendCommand(deps.address, command, timeoutMs),
    close: sessions.close,
  }
}

/** Lets the processor time of clamd count for the scan, until the returned function is called. */
function startUse({ findPid }: ClientDeps, work: Work): (() => void) | undefined {
  const pid = findPid?.()
  return pid === undefined ? undefined : work.onUse?.(pid, true)
}

async function sendCounted(send: () => Promise<string>, deps: ClientDeps, work: Work): Promise<string> {
  const endUse = startUse(deps, work)
  try {
    return await send()
  } finally {
    endUse?.()
  }
}

export type ClamdClient = ReturnType<typeof makeClamdClient>

const command = 'zINSTREAM\0'
const maxWaiting = 10_000
/** Longest wait of a caller for a connection: after it, a scan would have too little time left. */
const maxWaitMs = 20_000
/**
 * Connections for background jobs while callers come: as many as there are cores. With more, all threads of clamd work
 * for jobs, and the scan of a caller waits in clamd behind them.
 */
const jobConnections = Math.max(2, availableParallelism())
/** How long after the scan of a caller jobs leave the other connections free. */
const reservedForMs = 1000

/**
 * Connections that are kept, with one scan at a time on each: twice as fast for small content as a connection for each
 * scan. They are opened as needed, up to `count`.
 */
export function makeSessions({ count, ...deps }: ClientDeps & { count: number }) {
  const { address } = deps
  const reserved = Math.max(0, count - jobConnections)
  const permits = makeSemaphore({ count, maxWaiting, maxWaitMs, reserved, reservedForMs })
  let idle: Session[] = []
  /** Connections that were opened before the last `close` are not used again. */
  let generation = 0

  /** Takes a permit. Returns a promise only if the scan has to wait for it. */
  function waitForTurn(work: Work): Promise<void> | undefined {
    work.signal.throwIfAborted()
    return permits.acquire(work)?.catch((error) => {
      // clamd has not seen the content, so the content is not the cause.
      throw work.signal.aborted ? new EngineBusy('clamd was busy until the caller gave up') : error
    })
  }

  const busy = watchBusySessions()
  const owner: SessionOwner = {
    onBusy: busy.add,
    onIdle(session) {
      busy.remove(session)
      if (session.generation === generation) idle.push(session)
      else session.end()
    },
    onClosed(session) {
      busy.remove(session)
      idle = idle.filter((other) => other !== session)
    },
  }

  async function run(scan: () => Promise<string>, work: Work): Promise<string> {
    const turn = waitForTurn(work)
    if (turn !== undefined) await turn
    let endUse: (() => void) | undefined
    try {
      work.signal.throwIfAborted()
      endUse = startUse(deps, work)
      return await scan()
    } finally {
      endUse?.()
      permits.release(1, work)
    }
  }

  return {
    scan: (data: Buffer, work: Work): Promise<string> =>
      run(() => (idle.pop() ?? openSession(address, generation, owner)).scan(data, work.signal), work),
    /** Runs a scan on a connection of its own in the turn of a kept one. */
    run,
    /** Ends idle connections now, and the others after their scan. */
    close() {
      generation++
      for (const session of idle.splice(0)) session.end()
    },
  }
}

/** How often sessions ask whether the scan is given up. */
const abortCheckMs = 100

/** Stops scans that are given up. A listener on the signal of each scan took 2 % of the time of small files. */
function watchBusySessions() {
  const busy = new Set<Session>()
  let timer: NodeJS.Timeout | undefined

  const check = () => {
    for (const session of busy) session.stopIfAborted()
    if (busy.size > 0) return
    clearInterval(timer)
    timer = undefined
  }

  return {
    add(session: Session) {
      busy.add(session)
      timer ??= setInterval(check, abortCheckMs).unref()
    },
    remove: (session: Session) => busy.delete(session),
  }
}

type Session = {
  generation: number
  /** Call it for one scan at a time. A session that fails closes its connection. */
  scan(data: Buffer, signal: AbortSignal): Promise<string>
  /** Closes the connection if the signal of the current scan is aborted. */
  stopIfAborted(): void
  end(): void
}

type SessionOwner = {
  /** Called when a scan has begun. */
  onBusy(session: Session): void
  /** Called when a scan has ended and the session can take another one. */
  onIdle(session: Session): void
  onClosed(session: Session): void
}

type Pending = {
  resolve(reply: string): void
  reject(error: Error): void
  signal: AbortSignal
  /** Set when the whole reply has arrived, which may be a moment before it is accepted. */
  isAnswered: boolean
}

function openSession(address: ServerAddress, generation: number, owner: SessionOwner): Session {
  const { onBusy, onIdle, onClosed } = owner
  let commandCount = 0
  let pending: Pending | undefined
  let failure: Error | undefined
  // Replies are read into one buffer: an event with a buffer of its own for each takes several times as long.
  const received = Buffer.allocUnsafeSlow(2 * maxReplyLength)
  /** The received bytes of a reply that has not arrived whole. */
  let rest = noBytes
  // The session outlives the scan it was opened for, so it does not end with that scan's signal.
  const socket: Socket = connectTo(address, { onread: { buffer: received, callback: takeBytes } })
  socket.write('zIDSESSION\0')
  const session: Session = {
    generation,
    scan: (data, signal) =>
      new Promise((resolve, reject) => {
        commandCount++
        pending = { resolve, reject, signal, isAnswered: false }
        onBusy(session)
        sendContent(socket, data)
      }),
    stopIfAborted() {
      if (pending?.signal.aborted === true) socket.destroy(new Error('The caller gave up the scan'))
    },
    end: () => socket.end(),
  }

  const takePending = () => {
    const finished = pending
    pending = undefined
    return finished
  }

  function takeBytes(count: number): boolean {
    const part = received.subarray(0, count)
    const bytes = rest.length === 0 ? part : Buffer.concat([rest, part])
    const end = bytes.indexOf(0)
    const isWhole = end !== -1
    // After bytes without a request, without an end, or behind the reply, no reply surely belongs to its scan.
    const isExpected = bytes.length <= maxReplyLength && (!isWhole || end === bytes.length - 1)
    if (pending === undefined || pending.isAnswered || !isExpected) {
      socket.destroy(new Error('clamd sent an unexpected reply'))
      return false
    }
    if (!isWhole) {
      rest = Buffer.from(bytes)
      return true
    }
    rest = noBytes
    pending.isAnswered = true
    // `7: stream: OK`: the number counts the commands of the session.
    const text = bytes.toString('utf8', 0, end)
    const prefix = `${commandCount}: `
    if (!text.startsWith(prefix)) {
      socket.destroy(new Error('clamd replied to another command'))
      return false
    }
    const reply = text.slice(prefix.length)
    acceptReply(socket, reply, isSent, () => completeScan(reply))
    return !socket.destroyed
  }

  const isSent = () => socket.writableLength === 0

  function completeScan(reply: string) {
    const finished = takePending()
    // After an early reply, such as that of a limit, the rest would be sent from memory that is released now.
    if (isSent()) onIdle(session)
    else socket.destroy()
    finished?.resolve(reply)
  }

  socket.on('error', (error) => {
    failure = error
  })
  socket.on('close', () => {
    onClosed(session)
    const failed = takePending()
    failed?.reject(toEngineDown(failure ?? new Error('the connection was closed without a reply'), failed.signal))
  })
  return session
}

const noBytes = Buffer.alloc(0)

/** Content up to this size is copied, because one write of a copy costs less than a write of three parts. */
const copiedBytes = 16 * 1024

/** Sends the command, the length of the content, the content, and the length 0 as its end. */
function sendContent(socket: Socket, data: Buffer) {
  const isCopied = data.length <= copiedBytes
  const headBytes = command.length + 4
  const message = Buffer.allocUnsafe(isCopied ? headBytes + data.length + endOfStream.length : headBytes)
  message.write(command, 'latin1')
  message.writeUInt32BE(data.length, command.length)
  if (isCopied) {
    data.copy(message, headBytes)
    message.writeUInt32BE(0, message.length - endOfStream.length)
    socket.write(message)
    return
  }
  socket.cork()
  socket.write(message)
  socket.write(data)
  socket.write(endOfStream)
  socket.uncork()
}

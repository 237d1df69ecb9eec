import type { Socket } from 'node:net'
import { TLSSocket } from 'node:tls'
import type { Content } from '../../domain/content/content.ts'
import { EngineDown } from '../../domain/ports/engines.ts'
import { freeBuffer, waitForRoom } from '../../runtime/memory.ts'
import { connectTo, type ServerAddress } from '../../runtime/node-http.ts'
import { startAwakeTimer } from '../../runtime/timers.ts'

export const maxReplyLength = 4096
export const endOfStream = Buffer.alloc(4)
const chunkBytes = 512 * 1024

/** Sends a command without content: PING, VERSION, RELOAD. A stall of our own event loop does not count as time. */
export async function sendCommand(address: ServerAddress, command: string, timeoutMs: number): Promise<string> {
  const timeout = new AbortController()
  const timer = startAwakeTimer(timeoutMs, () => timeout.abort(new Error(`no reply within ${timeoutMs} ms`)))
  try {
    const socket = connectTo(address, { signal: timeout.signal })
    const reply = readReply(socket, neverAborted, () => true)
    socket.write(`z${command}\0`)
    return await reply
  } finally {
    timer.stop()
  }
}

const neverAborted = new AbortController().signal

export const isAnswering = (address: ServerAddress, timeoutMs: number): Promise<boolean> =>
  sendCommand(address, 'PING', timeoutMs).then(
    (answer) => answer === 'PONG',
    () => false,
  )

/** Scans on a connection of its own, for content that is read from storage. */
export async function streamToClamd(address: ServerAddress, content: Content, signal: AbortSignal): Promise<string> {
  const socket = connectTo(address, { signal })
  let isSent = false
  const reply = readReply(socket, signal, () => isSent)
  // The reply may come early, or never because sending fails first.
  reply.catch(() => {})
  try {
    await send(socket, content, () => {
      isSent = true
    })
    return await reply
  } catch (error) {
    socket.destroy()
    throw error
  }
}

/**
 * Accepts a reply, or destroys the socket: an OK that came before all of the content was sent is about a part of it. Over
 * its limit, clamd replies before it has all bytes. TLS reports sent bytes only when the event loop has read what came,
 * so that an OK over TLS which seems early is judged then. Nothing else may be accepted meanwhile.
 */
export function acceptReply(socket: Socket, reply: string, isSent: () => boolean, accept: () => void) {
  const isEarlyOk = () => reply === 'stream: OK' && !isSent()
  const decide = () => {
    if (socket.destroyed) return
    if (isEarlyOk()) socket.destroy(new Error('clamd replied before it had all of the content'))
    else accept()
  }
  if (isEarlyOk() && socket instanceof TLSSocket) setImmediate(decide)
  else decide()
}

/**
 * Sends chunks in groups, because clamd and Node both spend less on few large chunks than on many small ones. Stops when
 * clamd has replied or is gone. `onSent` is called only when the system has taken all bytes.
 */
async function send(socket: Socket, content: Content, onSent: () => void): Promise<void> {
  let sent = 0
  let group: Buffer[] = []
  let groupBytes = 0
  // Chunks from storage belong to this scan and are freed; content in memory stays for a second attempt.
  const isOwned = !content.isInMemory

  const flush = () => {
    const chunks = group
    socket.cork()
    socket.write(toLength(groupBytes))
    let hasRoom = true
    for (const chunk of chunks) hasRoom = socket.write(chunk, isOwned ? () => freeBuffer(chunk) : undefined)
    socket.uncork()
    sent += groupBytes
    group = []
    groupBytes = 0
    return hasRoom
  }

  socket.write('zINSTREAM\0')
  for await (const chunk of content.read()) {
    if (socket.destroyed || socket.readableEnded) return
    group.push(chunk)
    groupBytes += chunk.length
    if (groupBytes >= chunkBytes && !flush()) await waitForRoom(socket)
  }
  if (socket.destroyed || socket.readableEnded) return
  if (groupBytes > 0) flush()
  if (sent !== content.bytes) throw new EngineDown(`The content has ${sent} bytes where ${content.bytes} should be`)
  socket.write(endOfStream, (error) => {
    if (!error) onSent()
  })
}

function toLength(bytes: number): Buffer {
  const length = Buffer.allocUnsafe(4)
  length.writeUInt32BE(bytes)
  return length
}

function readReply(socket: Socket, signal: AbortSignal, isSent: () => boolean): Promise<string> {
  return new Promise((resolve, reject) => {
    let reply = ''
    socket.setEncoding('utf8')
    socket.on('data', (text: string) => {
      reply += text
      const end = reply.indexOf('\0')
      if (reply.length > maxReplyLength) socket.destroy(new Error('The reply is too long'))
      else if (end !== -1 && end !== reply.length - 1) socket.destroy(new Error('clamd sent more than one reply'))
      if (socket.destroyed || end === -1) return
      const whole = reply.slice(0, -1)
      acceptReply(socket, whole, isSent, () => {
        resolve(whole)
        socket.destroy()
      })
    })
    socket.on('error', (error) => reject(toEngineDown(error, signal)))
    socket.on('close', () => reject(new EngineDown('clamd closed the connection without a reply')))
  })
}

/** Errors after the caller's abort stay unchanged: they are not clamd's fault. */
export const toEngineDown = (error: Error, signal: AbortSignal) =>
  signal.aborted ? error : new EngineDown(`clamd cannot be reached: ${error.message}`, { cause: error })

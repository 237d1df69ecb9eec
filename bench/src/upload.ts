import { randomBytes } from 'node:crypto'
import { connect, type NetConnectOpts, type Socket } from 'node:net'

/** Pieces of one content. `stamp` changes the first piece, so that every content is new. */
export type Content = { bytes: number; pieces: Buffer[]; stamp(text: string): void }

/** Target of forms; a successful response is a 200, 201 or 202 that contains `expected` or, if allowed, a 503. */
export type HttpTarget = { url: string; headers: string[]; expected: string; mayBeBusy?: boolean }

/** Returns the bytes to write now; the first piece may have changed since the last call. */
export type Message = () => Buffer[]

/** A keep-alive connection on a bare socket, because a full client uses more processor time than what it measures. */
export function openHttp({ url, expected, mayBeBusy = false }: HttpTarget) {
  const { hostname, port } = new URL(url)
  const isGood = (reply: string) =>
    (/^HTTP\/1\.1 20[012] /.test(reply) && reply.includes(expected)) || (mayBeBusy && reply.startsWith('HTTP/1.1 503 '))
  return openKept({ host: hostname, port: Number(port) }, { isWhole: isWholeAnswer, isGood })
}

/** Wraps the content in a form with one field. */
export function newForm({ url, headers }: HttpTarget, content: Content, fileName: string): Message {
  const { hostname, port, pathname } = new URL(url)
  const boundary = `bench${randomBytes(12).toString('hex')}`
  const opening =
    `--${boundary}\r\nContent-Disposition: form-data; name="file"; filename="${fileName}"\r\n` +
    'Content-Type: application/octet-stream\r\n\r\n'
  const closing = `\r\n--${boundary}--\r\n`
  const head = [
    `POST ${pathname} HTTP/1.1`,
    `Host: ${hostname}:${port}`,
    ...headers,
    `Content-Type: multipart/form-data; boundary=${boundary}`,
    `Content-Length: ${opening.length + content.bytes + closing.length}`,
    '',
    opening,
  ].join('\r\n')
  return mergeSmall([Buffer.from(head), ...content.pieces, Buffer.from(closing)])
}

export function isWholeAnswer(reply: string): boolean {
  const body = reply.indexOf('\r\n\r\n') + 4
  const length = /\r\ncontent-length: (\d+)/i.exec(reply)?.[1]
  return body >= 4 && reply.length >= body + Number(length ?? 0)
}

/** `send` waits for a successful response. */
export function openKept(
  address: NetConnectOpts,
  { isWhole, isGood }: { isWhole(reply: string): boolean; isGood(reply: string): boolean },
) {
  const socket = connect(address)
  socket.setEncoding('latin1')
  let reply = ''
  let complete: { resolve(): void; reject(error: Error): void } | undefined
  const fail = (error: Error) => complete?.reject(error)
  socket.on('data', (text) => {
    reply += text
    if (!isWhole(reply)) return
    const answer = reply
    reply = ''
    if (isGood(answer)) complete?.resolve()
    else fail(new Error(`An unexpected answer: ${answer.slice(0, 1000)}`))
  })
  socket.on('error', fail)
  socket.on('close', () => fail(new Error(`The connection was closed after ${JSON.stringify(reply)}`)))
  return {
    socket,
    send: (message: Message) =>
      new Promise<void>((resolve, reject) => {
        complete = { resolve, reject }
        writeAll(socket, message(), reject)
      }),
    close: () => socket.destroy(),
  }
}

/** Small contents are sent in one write, from the same memory each time. */
export function mergeSmall(parts: Buffer[]): Message {
  const bytes = parts.reduce((sum, part) => sum + part.length, 0)
  if (bytes > 64 * 1024) return () => parts
  const whole = Buffer.allocUnsafe(bytes)
  return () => {
    let at = 0
    for (const part of parts) at += part.copy(whole, at)
    return [whole]
  }
}

export function writeAll(socket: Socket, parts: Buffer[], reject: (error: Error) => void) {
  const rest = parts.values()
  const next = () => {
    socket.cork()
    for (const part of rest) {
      if (socket.write(part)) continue
      socket.once('drain', next)
      break
    }
    socket.uncork()
  }
  if (socket.destroyed) reject(new Error('The connection is closed'))
  else next()
}

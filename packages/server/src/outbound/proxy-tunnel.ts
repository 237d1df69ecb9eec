import { isIPv6, type Socket } from 'node:net'
import { OutboundError } from './outbound-error.ts'

const maxAnswerBytes = 16 * 1024

/** Asks the proxy at the other end of the socket to connect it to this address. The socket is destroyed when it does not. */
export async function enterTunnel(
  socket: Socket,
  to: { address: string; port: number; proxy: URL },
  signal: AbortSignal,
): Promise<Socket> {
  const target = `${isIPv6(to.address) ? `[${to.address}]` : to.address}:${to.port}`
  socket.write(`CONNECT ${target} HTTP/1.1\r\nHost: ${target}\r\n${toAuthorization(to.proxy)}\r\n`)
  try {
    const status = await readAnswer(socket, signal)
    if (/^HTTP\/1\.[01] 2\d\d(?: |$)/.test(status)) return socket
    throw new OutboundError('The outbound proxy did not connect to the host.')
  } catch (error) {
    socket.destroy()
    throw error
  }
}

function toAuthorization({ username, password }: URL): string {
  if (username === '' && password === '') return ''
  const pair = `${decodeURIComponent(username)}:${decodeURIComponent(password)}`
  return `Proxy-Authorization: Basic ${Buffer.from(pair).toString('base64')}\r\n`
}

/** The status line. What follows the headers stays in the socket for whoever reads next. */
async function readAnswer(socket: Socket, signal: AbortSignal): Promise<string> {
  const { promise, resolve, reject } = Promise.withResolvers<string>()
  let seen = Buffer.alloc(0)
  const onReadable = () => {
    for (let chunk = socket.read(); chunk !== null; chunk = socket.read()) {
      seen = Buffer.concat([seen, chunk])
      const end = seen.indexOf('\r\n\r\n')
      if (end !== -1) {
        const rest = seen.subarray(end + 4)
        if (rest.length > 0) socket.unshift(rest)
        return resolve(seen.toString('latin1', 0, seen.indexOf('\r\n')))
      }
      if (seen.length > maxAnswerBytes) return reject(new OutboundError('The outbound proxy gave no valid answer.'))
    }
  }
  const onEnd = () => reject(new OutboundError('The outbound proxy closed the connection.'))
  const onAbort = () => reject(signal.reason)
  socket.on('readable', onReadable).once('end', onEnd).once('error', reject).once('close', onEnd)
  if (signal.aborted) onAbort()
  signal.addEventListener('abort', onAbort, { once: true })
  try {
    return await promise
  } finally {
    socket.off('readable', onReadable).off('end', onEnd).off('error', reject).off('close', onEnd)
    signal.removeEventListener('abort', onAbort)
  }
}

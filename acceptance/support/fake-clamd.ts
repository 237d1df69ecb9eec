import { mkdtempSync } from 'node:fs'
import { createServer, type Server, type Socket } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

/**
 * A fake clamd that speaks the protocol and responds to a scan as its content demands. Content
 * begins with `<behaviour> `; see `behaviours`.
 */
export async function openFakeClamd(path = join(mkdtempSync(join(tmpdir(), 'assay-fake-clamd-')), 'clamd.sock')) {
  const sockets = new Set<Socket>()
  let version = 'ClamAV 9.9.9/1/Sat Nov 14 08:25:01 2026'
  const server: Server = createServer((socket) => {
    sockets.add(socket)
    socket.on('error', () => {}).once('close', () => sockets.delete(socket))
    serve(socket, () => version)
  })
  await new Promise<void>((resolve) => server.listen(path, resolve))
  return {
    path,
    /** Changes the answer to VERSION: number and date of the databases, none without a slash. */
    setVersion(text: string) {
      version = text
    },
    async close() {
      for (const socket of sockets) socket.destroy()
      await new Promise((resolve) => server.close(resolve))
    },
  }
}

type Behaviour = (reply: (text: string) => void, socket: Socket) => void

/** Responses to a complete content; those named `early` are sent at the first bytes. */
const behaviours: Record<string, Behaviour> = {
  good: (reply) => reply('stream: OK\0'),
  bad: (reply) => reply('stream: Fake.Threat FOUND\0'),
  closes: (_reply, socket) => void socket.destroy(),
  'closes-early': (_reply, socket) => void socket.destroy(),
  garbage: (reply) => reply('\u0001\u0002 nonsense \uffff\0'),
  empty: (reply) => reply('\0'),
  half: (reply, socket) => {
    reply('stream: O')
    socket.end()
  },
  unended: (reply, socket) => {
    reply('stream: OK')
    socket.end()
  },
  'almost-ok': (reply) => reply('stream: OK \0'),
  'lower-ok': (reply) => reply('stream: ok\0'),
  'other-ok': (reply) => reply('/tmp/other: OK\0'),
  error: (reply) => reply('stream: Can not allocate memory ERROR\0'),
  'limit-error': (reply) => reply('INSTREAM size limit exceeded. ERROR\0'),
  'ok-early': (reply, socket) => {
    // While the content waits in the sender, the sender can know that the reply is early.
    socket.pause()
    reply('stream: OK\0')
  },
  silent: () => {},
}

function serve(socket: Socket, findVersion: () => string) {
  let bytes = Buffer.alloc(0)
  let inSession = false
  let commands = 0
  let scan: { content: Buffer; answered: boolean } | undefined
  const reply = (text: string) => void socket.write(inSession ? `${commands}: ${text}` : text)

  socket.on('data', (chunk) => {
    bytes = Buffer.concat([bytes, chunk])
    while (scan === undefined ? readCommand() : readChunk()) {}
  })

  function readCommand(): boolean {
    const end = bytes.indexOf(0)
    if (end === -1) return false
    const command = bytes.toString('latin1', 0, end)
    bytes = bytes.subarray(end + 1)
    if (command === 'zIDSESSION') {
      inSession = true
      return true
    }
    commands++
    if (command === 'zPING') reply('PONG\0')
    if (command === 'zVERSION') reply(`${findVersion()}\0`)
    if (command === 'zINSTREAM') scan = { content: Buffer.alloc(0), answered: false }
    return true
  }

  function readChunk(): boolean {
    if (scan === undefined || bytes.length < 4) return false
    const length = bytes.readUInt32BE()
    if (bytes.length < 4 + length) return false
    scan.content = Buffer.concat([scan.content, bytes.subarray(4, 4 + length)]).subarray(0, 100)
    bytes = bytes.subarray(4 + length)
    const name = scan.content.toString('latin1').split(' ', 1)[0] ?? ''
    if (length > 0 && !name.endsWith('-early')) return true
    if (scan.answered) return length > 0
    scan.answered = true
    if (length === 0) scan = undefined
    behaviours[name]?.(reply, socket)
    return true
  }
}

import { connect } from 'node:net'

/**
 * Stand-ins for programs that scan with clamd or ICAP. Each sends and reads as its original does by its source code,
 * and returns what the original makes of the answer.
 */
export type Outcome = 'accepted' | 'infected' | 'unscannable' | 'failed'

/** The port of a listener on 127.0.0.1, or the path of its unix socket. */
type Place = number | string

/** A blocking socket: `read` returns the next bytes, or none at the end; it throws when the connection is reset. */
function openSocket(place: Place) {
  const socket = typeof place === 'string' ? connect({ path: place }) : connect({ port: place, host: '127.0.0.1' })
  const chunks: Buffer[] = []
  let ended = false
  let failure: Error | undefined
  let wake = () => {}
  socket.on('data', (chunk) => {
    chunks.push(chunk)
    wake()
  })
  for (const event of ['end', 'close']) {
    socket.on(event, () => {
      ended = true
      wake()
    })
  }
  socket.on('error', (error) => {
    failure ??= error
    wake()
  })
  return {
    write: (bytes: Buffer | string) => new Promise<void>((resolve) => socket.write(bytes, () => resolve())),
    async read(): Promise<Buffer> {
      while (chunks.length === 0 && !ended && failure === undefined) {
        await new Promise<void>((resolve) => {
          wake = resolve
        })
      }
      const chunk = chunks.shift()
      if (chunk === undefined && failure !== undefined) throw failure
      return chunk ?? Buffer.alloc(0)
    },
    close: () => socket.destroy(),
  }
}

type OpenSocket = ReturnType<typeof openSocket>

async function withSocket(port: Place, use: (socket: OpenSocket) => Promise<Outcome>): Promise<Outcome> {
  const socket = openSocket(port)
  try {
    return await use(socket)
  } catch {
    return 'failed'
  } finally {
    socket.close()
  }
}

/** Reads until `isWhole` says that nothing is missing, or until the end. */
async function readUntil(socket: OpenSocket, isWhole: (text: string) => boolean): Promise<string> {
  let text = ''
  while (!isWhole(text)) {
    const chunk = await socket.read()
    if (chunk.length === 0) break
    text += chunk.toString('latin1')
  }
  return text
}

const toLength = (bytes: number) => {
  const length = Buffer.alloc(4)
  length.writeUInt32BE(bytes)
  return length
}

async function sendStream(socket: OpenSocket, command: string, content: Buffer, pieceBytes: number) {
  await socket.write(command)
  for (let at = 0; at < content.length; at += pieceBytes) {
    const piece = content.subarray(at, at + pieceBytes)
    await socket.write(Buffer.concat([toLength(piece.length), piece]))
  }
  await socket.write(toLength(0))
}

/** oCIS and OpenCloud over clamd: one line must match an expression; every status but FOUND is accepted. */
export const scanAsOcisClamd = (port: Place, content: Buffer) =>
  withSocket(port, async (socket) => {
    await sendStream(socket, 'nINSTREAM\n', content, 1024)
    const text = await readUntil(socket, (sofar) => sofar.includes('\n'))
    // Without a line the result is a null pointer, and the program fails.
    if (!text.includes('\n')) return 'failed'
    const line = text.slice(0, text.indexOf('\n')).trimEnd()
    const [, status] = /^[^:]+: (?:[^:]+(?:\([^:]+:\d+\))? )?(FOUND|ERROR|OK)$/.exec(line) ?? []
    return status === 'FOUND' ? 'infected' : 'accepted'
  })

/** Discourse: a session, read in small pieces up to a zero byte; an upload is refused only with FOUND in the text. */
export const scanAsDiscourse = (port: Place, content: Buffer) =>
  withSocket(port, async (socket) => {
    await socket.write('zIDSESSION\0')
    await sendStream(socket, 'zINSTREAM\0', content, 2048)
    await socket.write('zEND\0')
    const text = await readUntil(socket, (sofar) => sofar.endsWith('\0'))
    // Without the zero byte the program reads on for ever.
    if (!text.endsWith('\0')) return 'failed'
    return text.replaceAll('1: ', '').includes('FOUND') ? 'infected' : 'accepted'
  })

/** Nextcloud in the mode "ClamAV Daemon": rules for the first line, clean before infected before unchecked. */
export const scanAsNextcloudClamd = (port: Place, content: Buffer) =>
  withSocket(port, async (socket) => {
    await sendStream(socket, 'nINSTREAM\n', content, 8192)
    const line = (await readUntil(socket, (sofar) => sofar.includes('\n'))).split('\n')[0] ?? ''
    if (/.*: OK$/.test(line)) return 'accepted'
    return /.*: (.*) FOUND$/.test(line) ? 'infected' : 'failed'
  })

/** rspamd 3.4 over clamd: the text up to a zero byte. It fails with a Lua error after an ERROR, and accepts the mail. */
export const scanAsRspamdClamd = (port: Place, content: Buffer) =>
  withSocket(port, async (socket) => {
    await socket.write(Buffer.concat([Buffer.from('zINSTREAM\0'), toLength(content.length), content, toLength(0)]))
    const reply = (await readUntil(socket, (sofar) => sofar.includes('\0'))).split('\0')[0] ?? ''
    return /stream: (.+) FOUND/.test(reply) ? 'infected' : 'accepted'
  })

/** Mattermost: every line but OK refuses the upload, and no line at all accepts it. */
export const scanAsMattermost = (port: number, content: Buffer) =>
  withSocket(port, async (socket) => {
    await sendStream(socket, 'nINSTREAM\n', content, 1024)
    const text = await readUntil(socket, () => false)
    const lines = text.split('\n').slice(0, -1)
    return lines.every((line) => /^[^:]+: OK$/.test(line.trimEnd())) ? 'accepted' : 'infected'
  })

/** Sends a request as the ICAP client of oCIS and OpenCloud: a new connection, read up to an empty line or the end. */
async function requestAsOcis(port: Place, message: Buffer, rest: Buffer): Promise<string> {
  const socket = openSocket(port)
  const isWhole = (text: string) => text.endsWith('\r\n\r\n') || text.includes('ICAP/1.0 204 Unmodified')
  try {
    await socket.write(message)
    const answer = await readUntil(socket, isWhole)
    if (!answer.startsWith('ICAP/1.0 100 ') || rest.length === 0) return answer
    await socket.write(rest)
    return await readUntil(socket, isWhole)
  } finally {
    socket.close()
  }
}

const toChunks = (content: Buffer, end = '0\r\n\r\n') =>
  Buffer.concat([Buffer.from(`${content.length.toString(16)}\r\n`), content, Buffer.from(`\r\n${end}`)])

/** oCIS and OpenCloud over ICAP: OPTIONS, then REQMOD with a preview. The status is not looked at, only one header. */
export async function scanAsOcisIcap(port: Place, content: Buffer, service = 'avscan'): Promise<Outcome> {
  const address = `icap://127.0.0.1:${typeof port === 'string' ? 1344 : port}/${service}`
  const post = `POST http://cloud.test/data/1 HTTP/1.1\r\nHost: cloud.test\r\nContent-Length: ${content.length}\r\n\r\n`
  try {
    const options = await requestAsOcis(
      port,
      Buffer.from(`OPTIONS ${address} ICAP/1.0\r\nHost: x\r\nEncapsulated:  null-body=0\r\n\r\n`),
      Buffer.alloc(0),
    )
    const previewBytes = Number(/^Preview: (\d+)/m.exec(options)?.[1] ?? 0)
    const preview = previewBytes > 0 ? `Preview: ${previewBytes}\r\n` : ''
    const fits = content.length <= previewBytes || previewBytes === 0
    const first = fits ? content : content.subarray(0, previewBytes)
    const head = `REQMOD ${address} ICAP/1.0\r\nAllow: 204\r\nHost: x\r\n${preview}Encapsulated:  req-hdr=0, req-body=${post.length}\r\n\r\n`
    const body = toChunks(first, fits && preview !== '' ? '0; ieof\r\n\r\n' : '0\r\n\r\n')
    const rest = fits ? Buffer.alloc(0) : toChunks(content.subarray(previewBytes))
    const answer = await requestAsOcis(port, Buffer.concat([Buffer.from(`${head}${post}`), body]), rest)
    const [icapHead = ''] = answer.split('\r\n\r\n')
    return /^X-Infection-Found:/m.test(icapHead) ? 'infected' : 'accepted'
  } catch {
    return 'failed'
  }
}

/** Nextcloud in the mode ICAP: headers up to Encapsulated, the HTTP status of the page, and known error codes. */
export const scanAsNextcloudIcap = (port: Place, content: Buffer, service: string) =>
  withSocket(port, async (socket) => {
    const put = 'PUT / HTTP/1.0\r\nHost: nextcloud\r\n\r\n'
    const head = `REQMOD icap://127.0.0.1/${service} ICAP/1.0\r\nAllow: 204\r\nHost: 127.0.0.1\r\nConnection: close\r\n`
    await socket.write(`${head}Encapsulated: req-hdr=0, req-body=${put.length}\r\n\r\n${put}`)
    await socket.write(toChunks(content))
    const answer = await readUntil(socket, () => false)
    const [statusLine = '', ...lines] = answer.split('\r\n')
    const status = Number(/^ICAP\/\d\.\d (\d+) \S+/.exec(statusLine)?.[1])
    const end = lines.findIndex((line) => line.startsWith('Encapsulated: '))
    const headers = new Map(lines.slice(0, end).map((line) => line.split(': ', 2) as [string, string]))
    if (status === 200 || status === 204) {
      const page = status === 200 ? (lines[end + 2] ?? '') : ''
      return headers.has('X-Infection-Found') || page.includes('403 Forbidden') ? 'infected' : 'accepted'
    }
    const codes = ['decode_error', 'max_archive_layers_exceeded', 'password_protected']
    return status === 500 && codes.includes(headers.get('X-Error-Code') ?? '') ? 'unscannable' : 'failed'
  })

/** rspamd over ICAP: OPTIONS and RESPMOD on one connection, read up to an empty line. */
export const scanAsRspamdIcap = (port: Place, content: Buffer, service = 'avscan') =>
  withSocket(port, async (socket) => {
    const isWhole = (text: string) => text.includes('\r\n\r\n')
    await socket.write(`OPTIONS icap://127.0.0.1/${service} ICAP/1.0\r\nHost: x\r\nEncapsulated: null-body=0\r\n\r\n`)
    const options = await readUntil(socket, isWhole)
    if (!/^ICAP\/1\.. 2/.test(options) || !/^Methods: .*RESPMOD/m.test(options)) return 'failed'
    const get = 'GET http://127.0.0.1/mail HTTP/1.0\r\n\r\n'
    const ok = `HTTP/1.0 200 OK\r\nContent-Length: ${content.length}\r\n\r\n`
    const layout = `req-hdr=0, res-hdr=${get.length}, res-body=${get.length + ok.length}`
    await socket.write(`RESPMOD icap://127.0.0.1/${service} ICAP/1.0\r\nAllow: 204\r\nEncapsulated: ${layout}\r\n\r\n`)
    await socket.write(Buffer.concat([Buffer.from(`${get}${ok}`), toChunks(content)]))
    const head = (await readUntil(socket, isWhole)).split('\r\n\r\n')[0] ?? ''
    if (!/^ICAP\/1\.. 2/.test(head)) return 'failed'
    const [, found] = /^X-Infection-Found: (.*)$/im.exec(head) ?? []
    if (found === undefined) return 'accepted'
    return /Type=(.*?); Resolution=(.*?); Threat=(.*?);$/.test(found) ? 'infected' : 'failed'
  })

import { hash, randomUUID } from 'node:crypto'
import { createServer } from 'node:http'
import { type AddressInfo, connect } from 'node:net'
import { checkContent, noteRequest, readForm } from './bare-checks.ts'
import { openAdmissionStore, openSmallStore, type Scanned } from './bare-records.ts'

/**
 * The minimum work of a synchronous malware scan: reads the form, computes both hashes, asks clamd, and, with the
 * address of a database, charges an account and stores the result: in one small statement for all scans that wait, or,
 * with the word `admission`, as Assay does. No types, no containers, no cache, no encryption, no log; no key and no
 * limits without the admission. With the word `checks`, it also does what bare-checks.ts lists.
 */
const [socket = '', databaseUrl, records] = process.argv.slice(2)
/** Above this, a scan has a connection of its own: clamd reads one command of a session after the other. */
const sessionBytes = 256 * 1024
const sessions: (Session | undefined)[] = Array.from({ length: 16 })
let turn = 0

type Session = (content: Buffer) => Promise<string>

/** clamd closes sessions that are idle for long; the next scan opens another. */
function getSession(): Session {
  const at = turn++ % sessions.length
  const session =
    sessions[at] ??
    openSession(() => {
      sessions[at] = undefined
    })
  sessions[at] = session
  return session
}

function openSession(onClose: () => void): Session {
  const waiting = new Map<number, (reply: string) => void>()
  let [last, text] = [0, '']
  const connection = connect(socket)
  connection.write('zIDSESSION\0')
  connection.on('error', end).on('close', () => {
    if (waiting.size > 0) end(new Error('clamd closed a session with a scan'))
    onClose()
  })
  connection.on('data', (bytes) => {
    const replies = (text + bytes.toString('latin1')).split('\0')
    text = replies.pop() ?? ''
    for (const reply of replies) {
      const colon = reply.indexOf(':')
      const id = Number(reply.slice(0, colon))
      waiting.get(id)?.(reply.slice(colon + 2))
      waiting.delete(id)
    }
  })
  return (content: Buffer) =>
    new Promise<string>((resolve) => {
      waiting.set(++last, resolve)
      connection.cork()
      for (const part of toStream(content)) connection.write(part)
      connection.uncork()
    })
}

/** A minimum without clamd would measure nothing. */
function end(error: Error) {
  process.stderr.write(`${error.message}\n`)
  process.exit(1)
}

const scanAlone = (content: Buffer) =>
  new Promise<string>((resolve) => {
    const connection = connect(socket)
    let text = ''
    connection.on('error', end).on('close', () => resolve(text.slice(0, -1)))
    connection.on('data', (bytes) => {
      text += bytes.toString('latin1')
    })
    connection.cork()
    for (const part of toStream(content)) connection.write(part)
    connection.uncork()
  })

/** Small contents are copied, because one write costs more than that. */
function toStream(content: Buffer): Buffer[] {
  const head = Buffer.allocUnsafe(14)
  head.write('zINSTREAM\0', 'latin1')
  head.writeUInt32BE(content.length, 10)
  const parts = [head, content, Buffer.alloc(4)]
  return content.length < 4096 ? [Buffer.concat(parts)] : parts
}

const checks = records === 'checks'
const openStore = records === 'admission' || checks ? openAdmissionStore : openSmallStore
const store = databaseUrl === undefined ? undefined : await openStore(databaseUrl, end)

const server = createServer((request, response) => {
  const createdAt = new Date()
  const chunks: Buffer[] = []
  request.on('data', (chunk) => chunks.push(chunk))
  request.on('end', async () => {
    const form = chunks.length === 1 ? (chunks[0] as Buffer) : Buffer.concat(chunks)
    const boundary = request.headers['content-type']?.split('boundary=')[1] ?? ''
    const content = checks
      ? readForm(form, boundary)
      : form.subarray(form.indexOf('\r\n\r\n') + 4, form.length - boundary.length - 8)
    const scan = content.length > sessionBytes ? scanAlone : getSession()
    const scanning = scan(content)
    // While clamd scans.
    const hashes = { hash_sha1: hash('sha1', content), hash_sha256: hash('sha256', content) }
    const checked = checks ? await checkContent(content, hashes) : undefined
    const reply = await scanning
    const completedAt = new Date()
    const scanned: Omit<Scanned, 'body'> = {
      id: randomUUID(),
      status: reply.endsWith('FOUND') ? 'threat' : reply.endsWith('OK') && !checked?.isDoubtful ? 'clean' : 'error',
      contentLength: content.length,
      hashes,
      createdAt,
      completedAt,
    }
    const body = JSON.stringify({
      id: scanned.id,
      scan_type: 'malware',
      status: scanned.status,
      content_length: content.length,
      content_type: checked?.contentType,
      signals: [],
      metadata: hashes,
      created_at: createdAt.toISOString(),
      completed_at: completedAt.toISOString(),
    })
    await store?.({ ...scanned, body })
    const length = Buffer.byteLength(body)
    const noted = checks ? noteRequest(request, createdAt) : {}
    response.writeHead(201, { 'content-type': 'application/json', 'content-length': length, ...noted }).end(body)
  })
})
server.listen(0, '127.0.0.1', () => {
  const { port } = server.address() as AddressInfo
  process.stdout.write(`${JSON.stringify({ url: `http://127.0.0.1:${port}/` })}\n`)
})

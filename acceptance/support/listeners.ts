import { spawnSync } from 'node:child_process'
import { existsSync } from 'node:fs'
import { connect, type Socket } from 'node:net'
import { readSpent } from './scanning.ts'
import { type Service, startService } from './start-service.ts'
import { waitUntil } from './wait-until.ts'

/** Key of the first account, for which all listeners scan. */
export const listenerKey = 'the-key-of-the-listeners'

export type Listeners = Service & {
  ports: { clamd: number; icap: number }
  /** Port of a listener that assay.toml defines. */
  findPort(name: string): number
  /** Number of credits spent so far. */
  countCharges(): Promise<number>
  /** Fetches the results of all scans that the listeners logged. */
  listResults(): Promise<Result[]>
}

type Result = { id: string; status: string; content_name?: string }

/** Starts a service with both listeners open on free ports, both with the key of its first account. */
export async function startListeners(env: NodeJS.ProcessEnv = {}): Promise<Listeners> {
  const listen = { ASSAY_CLAMD_LISTEN: '0', ASSAY_ICAP_LISTEN: '0' }
  const key = listenerKey
  const keys = { ASSAY_BOOTSTRAP_KEY: key, ASSAY_CLAMD_LISTEN_KEY: key, ASSAY_ICAP_KEY: key }
  // Content over 1 MB goes to the disk, where tests see whether it is left behind.
  const service = await startService({ ...listen, ...keys, ASSAY_CONTENT_MEMORY_MB: '1', ...env })
  const findPort = (name: string) => Number(new RegExp(`"listener":"${name}".*"port":(\\d+)`).exec(service.log())?.[1])
  await waitUntil('the listeners to be open', () => findPort('clamd') > 0 && findPort('icap') > 0)
  /** Results that were fetched already, because tests list them again and again while they wait for one. */
  const results = new Map<string, Result>()
  const fetchResult = async (id: string) => {
    const answer = await fetch(`${service.url}/v1/malware/${id}`, { headers: { 'X-API-Key': key } })
    if (answer.ok) results.set(id, (await answer.json()) as Result)
  }
  return {
    ...service,
    apiKey: key,
    ports: { clamd: findPort('clamd'), icap: findPort('icap') },
    findPort,
    countCharges: () => readSpent({ url: service.url, apiKey: key }),
    async listResults() {
      const ids = [...service.log().matchAll(/"scanId":"([^"]+)"/g)].map(([, id]) => id ?? '')
      await Promise.all(ids.filter((id) => !results.has(id)).map(fetchResult))
      return [...results.values()]
    },
  }
}

/** Sends the pieces and returns everything that the service sends until it closes the connection. */
export async function talk(port: number, ...pieces: (Buffer | string)[]): Promise<string> {
  const { socket, heard } = openTalk(port)
  for (const piece of pieces) socket.write(piece)
  await waitUntil('the service to hang up', () => socket.destroyed || socket.readableEnded)
  socket.destroy()
  return heard()
}

/** Opens a connection; `heard` returns everything received so far. */
export function openTalk(port: number): { socket: Socket; heard(): string } {
  const socket = connect({ port, host: '127.0.0.1' })
  let text = ''
  socket
    .on('error', () => {})
    .on('data', (chunk) => {
      text += chunk.toString('latin1')
    })
  return { socket, heard: () => text }
}

/** Encodes content for INSTREAM: chunks with their lengths, and the terminator. */
export function toStream(content: Buffer | string, pieceBytes = 64 * 1024): Buffer {
  const bytes = Buffer.from(content)
  const pieces: Buffer[] = []
  for (let at = 0; at < bytes.length; at += pieceBytes) {
    const piece = bytes.subarray(at, at + pieceBytes)
    pieces.push(toLength(piece.length), piece)
  }
  return Buffer.concat([...pieces, toLength(0)])
}

export function toLength(bytes: number): Buffer {
  const length = Buffer.alloc(4)
  length.writeUInt32BE(bytes)
  return length
}

/** Encodes an ICAP request with an HTTP message. */
export function toIcap(
  method: 'REQMOD' | 'RESPMOD',
  body: Buffer | string | undefined,
  { icap = '', http = '', end = '0\r\n\r\n', service = 'avscan' } = {},
): Buffer {
  const request = `${method === 'REQMOD' ? 'POST' : 'GET'} http://x.test/dir/a%20file.bin HTTP/1.1\r\nHost: x.test\r\n`
  const sections =
    method === 'REQMOD' ? [`${request}${http}\r\n`] : [`${request}\r\n`, `HTTP/1.1 200 OK\r\n${http}\r\n`]
  const names = method === 'REQMOD' ? ['req-hdr', 'req-body'] : ['req-hdr', 'res-hdr', 'res-body']
  const starts = sections.map((_, i) => sections.slice(0, i).join('').length)
  const bodyName = body === undefined ? 'null-body' : names.at(-1)
  const layout = [...starts.map((start, i) => `${names[i]}=${start}`), `${bodyName}=${sections.join('').length}`]
  const head = `${method} icap://127.0.0.1/${service} ICAP/1.0\r\nHost: x\r\n${icap}Encapsulated: ${layout.join(', ')}\r\n\r\n`
  if (body === undefined) return Buffer.from(`${head}${sections.join('')}`)
  const bytes = Buffer.from(body)
  const chunk = bytes.length === 0 ? [] : [Buffer.from(`${bytes.length.toString(16)}\r\n`), bytes, Buffer.from('\r\n')]
  return Buffer.concat([Buffer.from(`${head}${sections.join('')}`), ...chunk, Buffer.from(end)])
}

/** Returns the reason to skip tests that use this client of Debian, or false when it is installed. */
export const lacksClient = (path: string, name: string) =>
  existsSync(path) ? false : `${name} is not installed, and only root may install it`

/** Runs a client and returns its exit code and output. */
export function runClient(path: string, ...args: string[]): { code: number | null; out: string } {
  const { status, stdout, stderr } = spawnSync(path, args, { encoding: 'latin1', timeout: 60_000 })
  return { code: status, out: `${stdout}${stderr}` }
}

import { mkdtempSync, rmSync } from 'node:fs'
import { createServer, type Socket } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { TestContext } from 'node:test'

/** One connection as the fake sees it. */
export type Seen = {
  socket: Socket
  /** Every byte that came. */
  raw: Buffer
  /** The content of each INSTREAM that came whole. */
  scans: Buffer[]
  closed: boolean
}

/** Handles a complete scan, by default with `OK`; `n` counts the scans of the connection. */
export type Behaviour = (scan: { data: Buffer; seen: Seen; n: number }) => void

const isSession = (seen: Seen) => seen.raw.subarray(0, 11).equals(Buffer.from('zIDSESSION\0'))

/** Replies as clamd does: with a number in a session, otherwise by closing the connection. */
export function answer(seen: Seen, n: number, text: string) {
  if (isSession(seen)) seen.socket.write(`${n}: ${text}\0`)
  else seen.socket.end(`${text}\0`)
}

/** A server that understands the commands which Assay sends to clamd. */
export async function openFakeClamd(t: TestContext, options: { onScan?: Behaviour; onPing?(seen: Seen): void } = {}) {
  const onScan = options.onScan ?? (({ seen, n }) => answer(seen, n, 'stream: OK'))
  const onPing = options.onPing ?? ((seen: Seen) => answer(seen, 1, 'PONG'))
  const dir = mkdtempSync(join(tmpdir(), 'assay-clamd-'))
  const path = join(dir, 'clamd.sock')
  const connections: Seen[] = []
  let most = 0
  const server = createServer({ allowHalfOpen: false }, (socket) => {
    const seen: Seen = { socket, raw: Buffer.alloc(0), scans: [], closed: false }
    connections.push(seen)
    most = Math.max(most, connections.filter(({ closed }) => !closed).length)
    let at = 0
    socket.on('error', () => {})
    socket.on('close', () => {
      seen.closed = true
    })
    socket.on('data', (part) => {
      seen.raw = Buffer.concat([seen.raw, part])
      for (;;) {
        const command = readCommand(seen.raw, at)
        if (command === undefined) return
        at = command.end
        if (command.name === 'PING') onPing(seen)
        if (command.data === undefined) continue
        seen.scans.push(command.data)
        onScan({ data: command.data, seen, n: seen.scans.length })
      }
    })
  })
  const listen = () => new Promise<void>((resolve) => server.listen(path, resolve))
  const stop = () =>
    new Promise<void>((resolve) => {
      for (const { socket } of connections) socket.destroy()
      server.close(() => resolve())
    })
  await listen()
  t.after(async () => {
    await stop()
    rmSync(dir, { recursive: true, force: true })
  })
  return { address: { path }, connections, findMost: () => most, listen, stop }
}

function readCommand(raw: Buffer, at: number): { name: string; data?: Buffer; end: number } | undefined {
  const nul = raw.indexOf(0, at)
  if (nul === -1) return undefined
  const name = raw.toString('latin1', at + 1, nul)
  if (name !== 'INSTREAM') return { name, end: nul + 1 }
  const chunks: Buffer[] = []
  for (let next = nul + 1; ; ) {
    if (raw.length < next + 4) return undefined
    const bytes = raw.readUInt32BE(next)
    next += 4
    if (bytes === 0) return { name, data: Buffer.concat(chunks), end: next }
    if (raw.length < next + bytes) return undefined
    chunks.push(raw.subarray(next, next + bytes))
    next += bytes
  }
}

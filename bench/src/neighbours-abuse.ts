import { randomUUID } from 'node:crypto'
import { connect, type Socket } from 'node:net'
import { setPriority } from 'node:os'
import { setTimeout as sleep } from 'node:timers/promises'
import { newZeros, newZip } from '../../acceptance/support/archives.ts'

/** `address` is the local address of the abuser: another one than that of its neighbour. */
export type AbuseJob = { kind: Kind; url: string; key: string; address: string } | { stop: true }
/** `answers` counts the answers by their status. */
export type AbuseResult = { answers: Record<string, number> }
export type Kind = keyof typeof kinds

setPriority(10)

const strangerConnections = 64
const slowUploads = 500
const signInConnections = 16
const bombConnections = 8

type Attack = {
  target: { host: string; port: number; key: string }
  open(): Socket
  isOver(): boolean
  count(reply: Buffer): void
}

/** Each kind of abuse, from one address, until it is over. Requests are made before, so that sending them costs little. */
const kinds = {
  'pipelined requests': (attack: Attack) => pipeline(attack, [`X-API-Key: ${attack.target.key}`]),
  'pipelined requests without a key': (attack: Attack) => pipeline(attack, []),
  'requests with wrong keys': (attack: Attack) => together(strangerConnections, () => askWithWrongKeys(attack)),
  'connections with a wrong key each': (attack: Attack) => together(signInConnections, () => connectAgain(attack)),
  'an upload in 1-byte chunks': (attack: Attack) => sendTinyChunks(attack, 'b'),
  'an upload with a long boundary': (attack: Attack) => sendTinyChunks(attack, 'b'.repeat(6000)),
  'slow uploads': (attack: Attack) => together(slowUploads, (i) => uploadSlowly(attack, i)),
  'sign-ins': (attack: Attack) => together(signInConnections, (i) => signIn(attack, i)),
  bombs: (attack: Attack) => together(bombConnections, () => sendBombs(attack)),
}

let isOver = true

process.on('message', (job: AbuseJob) => {
  if ('stop' in job) {
    isOver = true
    return
  }
  run(job).then(
    (result) => process.send?.(result),
    (error: Error) => process.send?.({ error: error.stack ?? error.message }),
  )
})
process.on('disconnect', () => process.exit())

async function run({ kind, url, key, address }: Exclude<AbuseJob, { stop: true }>): Promise<AbuseResult> {
  const { hostname, port } = new URL(url)
  const answers: Record<string, number> = {}
  const sockets = new Set<Socket>()
  isOver = false
  const work = kinds[kind]({
    target: { host: `${hostname}:${port}`, port: Number(port), key },
    open() {
      const socket = connect({ port: Number(port), host: hostname, localAddress: address })
      sockets.add(socket)
      socket.on('error', () => {})
      socket.on('close', () => sockets.delete(socket))
      return socket
    },
    isOver: () => isOver,
    count(reply) {
      for (let at = reply.indexOf('HTTP/1.1 '); at !== -1; at = reply.indexOf('HTTP/1.1 ', at + 12)) {
        const status = reply.toString('latin1', at + 9, at + 12)
        answers[status] = (answers[status] ?? 0) + 1
      }
    },
  })
  while (!isOver) await sleep(20)
  for (const socket of sockets) socket.destroy()
  await work
  return { answers }
}

const together = async (count: number, work: (i: number) => Promise<void>) => {
  await Promise.all(Array.from({ length: count }, (_, i) => work(i)))
}

const toRequest = (lines: string[]) => Buffer.from([...lines, '', ''].join('\r\n'), 'latin1')

/** Writes all the bytes as fast as the service takes them, and resolves when the connection has ended. */
function sendAll({ open, count }: Attack, parts: Buffer[], isLast: (answers: number) => boolean): Promise<void> {
  return new Promise((resolve) => {
    const socket = open()
    const rest = parts.values()
    let answers = 0
    const next = () => {
      for (const part of rest) if (!socket.write(part)) return void socket.once('drain', next)
    }
    socket.on('data', (reply) => {
      count(reply)
      for (let at = reply.indexOf('HTTP/1.1 '); at !== -1; at = reply.indexOf('HTTP/1.1 ', at + 1)) answers++
      if (isLast(answers)) socket.destroy()
    })
    socket.on('close', () => resolve())
    next()
  })
}

const pipelined = 45_000

async function pipeline(attack: Attack, headers: string[]) {
  const one = toRequest(['GET /v1/ping HTTP/1.1', `Host: ${attack.target.host}`, ...headers])
  const block = Buffer.concat(Array.from({ length: 500 }, () => one))
  const parts = Array.from({ length: pipelined / 500 }, () => block)
  while (!attack.isOver()) {
    await sendAll(attack, parts, (answers) => answers >= pipelined)
    await sleep(1)
  }
}

/** Sends a request with another key after each answer, and opens a closed connection again. */
async function askWithWrongKeys({ target, open, isOver, count }: Attack) {
  while (!isOver()) {
    await new Promise<void>((resolve) => {
      const socket = open()
      const next = () => socket.write(newWrongRequest(target.host))
      socket.on('connect', next)
      socket.on('data', (reply) => {
        count(reply)
        next()
      })
      socket.on('close', () => resolve())
    })
    await sleep(1)
  }
}

/** Leaves as soon as the request is sent, so that no held answer slows it down. */
async function connectAgain({ target, open, isOver, count }: Attack) {
  while (!isOver()) {
    await new Promise<void>((resolve) => {
      const socket = open()
      socket.on('connect', () => socket.end(newWrongRequest(target.host)))
      socket.on('data', (reply) => {
        count(reply)
        socket.destroy()
      })
      socket.on('close', () => resolve())
      setTimeout(() => socket.destroy(), 20)
    })
  }
}

const newWrongRequest = (host: string) =>
  toRequest(['GET /v1/ping HTTP/1.1', `Host: ${host}`, `X-API-Key: wrong-${Math.random().toString(36)}-0123456789`])

function toUploadHead({ host, key }: Attack['target'], boundary: string, framing: string): Buffer {
  return toRequest([
    'POST /v1/malware/scan/file HTTP/1.1',
    `Host: ${host}`,
    `X-API-Key: ${key}`,
    `Content-Type: multipart/form-data; boundary=${boundary}`,
    framing,
  ])
}

const toPartHead = (boundary: string) =>
  toRequest([`--${boundary}`, 'Content-Disposition: form-data; name="file"; filename="a.txt"'])

/** Sends endless uploads. Every chunk has one byte, and all bytes of the content begin like the boundary. */
async function sendTinyChunks(attack: Attack, boundary: string) {
  const toChunks = (bytes: Buffer) =>
    Buffer.from([...bytes].map((byte) => `1\r\n${String.fromCharCode(byte)}\r\n`).join(''), 'latin1')
  const head = toUploadHead(attack.target, boundary, 'Transfer-Encoding: chunked')
  const beginning = Buffer.from(`\r\n--${boundary.slice(0, -1)}x`, 'latin1')
  const content = toChunks(Buffer.alloc(Math.max(16_384, beginning.length * 2), beginning))
  const parts = [head, toChunks(toPartHead(boundary)), ...Array.from({ length: 5000 }, () => content)]
  while (!attack.isOver()) {
    await sendAll(attack, parts, (answers) => answers > 0)
    await sleep(1)
  }
}

/** Sends a little more than the slowest upload that the service accepts. */
async function uploadSlowly(attack: Attack, i: number) {
  const head = toUploadHead(attack.target, 'b', `Content-Length: ${20 * 1024 * 1024}`)
  const drip = Buffer.alloc(120, 'a')
  await sleep(i)
  while (!attack.isOver()) {
    await new Promise<void>((resolve) => {
      const socket = attack.open()
      socket.write(Buffer.concat([head, toPartHead('b')]))
      const timer = setInterval(() => socket.write(drip), 100)
      socket.on('data', attack.count)
      socket.on('close', () => {
        clearInterval(timer)
        resolve()
      })
    })
    await sleep(100)
  }
}

async function signIn(attack: Attack, i: number) {
  for (let turn = 0; !attack.isOver(); turn++) {
    const body = JSON.stringify({ email: `guess${i}-${turn}@example.com`, password: 'correct horse battery' })
    const head = toRequest([
      'POST /admin/v1/session HTTP/1.1',
      `Host: ${attack.target.host}`,
      'Content-Type: application/json',
      `Content-Length: ${body.length}`,
    ])
    await sendAll(attack, [head, Buffer.from(body)], (answers) => answers > 0)
  }
}

const zeros = newZeros(100)

/** Archives of a megabyte that unpack to 900 MB, just below the limit. A name makes each one new to the verdict cache. */
async function sendBombs(attack: Attack) {
  while (!attack.isOver()) {
    const bomb = newZip(Array.from({ length: 9 }, () => ({ name: randomUUID(), ...zeros })))
    const closing = Buffer.from('\r\n--b--\r\n')
    const part = toPartHead('b')
    const head = toUploadHead(attack.target, 'b', `Content-Length: ${part.length + bomb.length + closing.length}`)
    await sendAll(attack, [head, part, bomb, closing], (answers) => answers > 0)
  }
}

import { connect, type Socket } from 'node:net'
import { setPriority } from 'node:os'
import { setTimeout as sleep } from 'node:timers/promises'
import { newContent } from './malware-content.ts'
import { isWholeAnswer, newForm } from './upload.ts'

/** A well-behaved account: pings and small scans at a steady pace, for `seconds`. */
export type ClientJob = { url: string; headers: string[]; seconds: number }
/** Latencies in milliseconds, each from the time at which the request was due. */
export type ClientResult = { pings: number[]; scans: number[]; failed: string[] }

const pingEveryMs = 20
const scanEveryMs = 50
const maxWaitMs = 15_000

try {
  // The client measures: it must not wait for a processor where the service would not.
  setPriority(-10)
} catch {
  // Without the permission it waits like every other process.
}

process.on('message', (job: ClientJob) => {
  measure(job).then(
    (result) => process.send?.(result),
    (error: Error) => process.send?.({ error: error.stack ?? error.message }),
  )
})
process.on('disconnect', () => process.exit())

async function measure({ url, headers, seconds }: ClientJob): Promise<ClientResult> {
  const { hostname, port } = new URL(url)
  const open = () => connect(Number(port), hostname)
  const pings = makeSender(open, 200)
  const scans = makeSender(open, 201)
  const ping = Buffer.from(['GET /v1/ping HTTP/1.1', `Host: ${hostname}:${port}`, ...headers, '', ''].join('\r\n'))
  const content = newContent(1024, 0)
  const form = newForm({ url, headers, expected: '' }, content, 'a.txt')
  const seed = Math.random().toString(16).slice(2, 10)
  let sent = 0
  const start = performance.now()
  const end = start + seconds * 1000
  await Promise.all([
    atPace(start, end, pingEveryMs, (due) => pings.send(ping, due)),
    atPace(start, end, scanEveryMs, (due) => {
      content.stamp(`${seed}${(sent++).toString(16)}`)
      scans.send(Buffer.concat(form()), due)
    }),
  ])
  await Promise.all([pings.finish(), scans.finish()])
  return { pings: pings.times, scans: scans.times, failed: [...pings.failed, ...scans.failed] }
}

/** Calls `send` at every due time, also for times that have passed while the process was held up. */
async function atPace(start: number, end: number, everyMs: number, send: (due: number) => void) {
  for (let due = start; due < end; due += everyMs) {
    if (performance.now() < due) await sleep(due - performance.now())
    send(due)
  }
}

/** Sends each request on an idle connection, or a new one: a slow answer delays no later request. */
function makeSender(open: () => Socket, status: number) {
  const idle: Socket[] = []
  const busy = new Set<Socket>()
  const times: number[] = []
  const failed: string[] = []

  return {
    times,
    failed,
    send(bytes: Buffer, due: number) {
      const socket = idle.pop() ?? open()
      busy.add(socket)
      let reply = ''
      const settle = (failure?: string) => {
        socket.removeAllListeners('data').removeAllListeners('close').removeAllListeners('error')
        socket.on('error', () => {})
        busy.delete(socket)
        times.push(performance.now() - due)
        if (failure === undefined) idle.push(socket)
        else failed.push(failure)
      }
      socket.on('data', (chunk) => {
        reply += chunk.toString('latin1')
        if (!isWholeAnswer(reply)) return
        settle(reply.startsWith(`HTTP/1.1 ${status} `) ? undefined : reply.slice(0, 200))
      })
      socket.on('error', () => {})
      socket.on('close', () => settle('The connection was closed'))
      socket.write(bytes)
    },
    async finish() {
      for (let waited = 0; busy.size > 0 && waited < maxWaitMs; waited += 20) await sleep(20)
      for (const _ of busy) {
        times.push(maxWaitMs)
        failed.push(`No answer within ${maxWaitMs} ms`)
      }
      for (const socket of [...idle, ...busy]) socket.removeAllListeners('close').destroy()
    },
  }
}

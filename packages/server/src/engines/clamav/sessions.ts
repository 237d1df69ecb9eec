import type { Socket } from 'node:net'
import { EngineBusy } from '../../domain/ports/engines.ts'
import { type ClamdAddress, dial, maxReplyLength, toEngineDown, toLength } from './connection.ts'

type Job = {
  data: Buffer
  signal: AbortSignal
  sinceMs: number
  resolve(reply: string): void
  reject(error: unknown): void
  /** For one that gives up before its turn. */
  leave(): void
}

const command = Buffer.from('zINSTREAM\0')
const endOfStream = Buffer.alloc(4)
const maxWaiting = 10_000
/** Whoever has waited longer would have too little time left for the scan itself. */
const maxWaitMs = 20_000

/**
 * Connections that are kept and used again, one scan at a time on each: twice as fast as a connection for each scan when
 * the content is small. Opened as needed, up to `count`.
 */
export function makeSessions(deps: { address: ClamdAddress; count: number }) {
  const idle: Session[] = []
  const waiting: Job[] = []
  let open = 0
  /** Connections that were opened before the last `close` are not used again. */
  let generation = 0

  type Session = ReturnType<typeof openSession>

  return {
    scan: (data: Buffer, signal: AbortSignal): Promise<string> =>
      new Promise((resolve, reject) => {
        if (waiting.length >= maxWaiting) throw new EngineBusy(`${maxWaiting} scans wait for clamd already`)
        if (signal.aborted) throw signal.reason
        const leave = () => {
          waiting.splice(waiting.indexOf(job), 1)
          // It was never looked at: that says nothing of the content.
          reject(new EngineBusy('clamd had no time for it'))
        }
        const job: Job = { data, signal, sinceMs: performance.now(), resolve, reject, leave }
        signal.addEventListener('abort', leave, { once: true })
        waiting.push(job)
        serve()
      }),
    /** Ends the connections that do nothing. Those at work end after it. */
    close() {
      generation++
      for (const session of idle.splice(0)) session.end()
    },
  }

  function serve() {
    turnLateAway()
    while (waiting.length > 0) {
      const session = idle.pop() ?? (open < deps.count ? openSession() : undefined)
      if (session === undefined) return
      const job = waiting.shift() as Job
      job.signal.removeEventListener('abort', job.leave)
      session.run(job)
    }
  }

  /** They came in order. */
  function turnLateAway() {
    const earliestMs = performance.now() - maxWaitMs
    for (let [first] = waiting; first !== undefined && first.sinceMs < earliestMs; [first] = waiting) {
      waiting.shift()
      first.signal.removeEventListener('abort', first.leave)
      first.reject(new EngineBusy(`No turn at clamd within ${maxWaitMs} ms`))
    }
  }

  function openSession() {
    open++
    const born = generation
    let asked = 0
    let job: Job | undefined
    let text = ''
    let failure: Error | undefined
    // The session outlives the job it was opened for, so it does not end with that job's signal.
    const socket: Socket = dial(deps.address, new AbortController().signal)
    socket.setEncoding('utf8')
    socket.write('zIDSESSION\0')
    const stop = () => socket.destroy(new Error('The scan was given up'))

    const session = {
      run(next: Job) {
        job = next
        asked++
        job.signal.addEventListener('abort', stop, { once: true })
        // Copied together: for small content one plain write costs less than four that are gathered.
        socket.write(Buffer.concat([command, toLength(next.data.length), next.data, endOfStream]))
      },
      end: () => socket.end(),
    }

    const takeJob = () => {
      const done = job
      job = undefined
      done?.signal.removeEventListener('abort', stop)
      return done
    }

    socket.on('data', (part: string) => {
      text += part
      // Nobody asked for it, or it has no end: what follows would not be about the next scan.
      if (job === undefined || text.length > maxReplyLength) {
        socket.destroy(new Error('clamd said what nobody asked for'))
        return
      }
      if (!text.endsWith('\0')) return
      // `7: stream: OK`: the number counts the commands of the session.
      const prefix = `${asked}: `
      if (!text.startsWith(prefix)) {
        socket.destroy(new Error('clamd answered something else'))
        return
      }
      const reply = text.slice(prefix.length, -1)
      text = ''
      const done = takeJob()
      if (born === generation) idle.push(session)
      else socket.end()
      serve()
      done?.resolve(reply)
    })
    socket.on('error', (error) => {
      failure = error
    })
    socket.on('close', () => {
      open--
      const at = idle.indexOf(session)
      if (at !== -1) idle.splice(at, 1)
      const done = takeJob()
      done?.reject(toEngineDown(failure ?? new Error('the connection was closed without an answer'), done.signal))
      serve()
    })
    return session
  }
}

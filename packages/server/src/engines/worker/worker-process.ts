import { type ChildProcess, spawn } from 'node:child_process'
import type { Duplex } from 'node:stream'
import { readAnswers } from './answers.ts'
import { sendBody } from './send-body.ts'
import { abandoned, endOfBody, toFrame, toLength } from './wire.ts'

/** The process ended by itself or by another's hand. */
export class ProcessDied extends Error {}
/** It did not answer in time and was ended. */
export class AnswerLate extends Error {}

export type WorkerProcess<Request, Answer> = {
  readonly pid: number | undefined
  /**
   * One at a time. When the body cannot be sent (`signal`, a failing read, `sendMs`) that is what is thrown, and the
   * process stays usable; without an answer for `answerMs` after sending it is killed.
   */
  ask(
    request: Request,
    body: Buffer | AsyncIterable<Buffer>,
    limits: { sendMs: number; answerMs: number; signal?: AbortSignal },
  ): Promise<Answer>
  /** True as soon as it is of no more use, a moment before it has ended. */
  isDead(): boolean
  /** Resolves when it has ended. */
  ended: Promise<void>
  /** Lets it finish what it does, then it ends by itself. */
  end(): void
  kill(): void
  /** Kills it too, and the reason is what whoever waits for its answer gets. */
  giveUp(reason: Error): void
}

export type Launch = {
  command: string
  args: string[]
  uid?: number
  gid?: number
  /** Beside PATH, which is all that it gets otherwise. */
  env?: Record<string, string>
}

/** Starts a program that reads requests with `makeRequests` until the pipe ends. It gets nothing of our environment. */
export function startWorkerProcess<Request extends object, Answer extends object>(
  name: string,
  { command, args, env, ...user }: Launch,
): WorkerProcess<Request, Answer> {
  const child = spawn(command, args, {
    ...user,
    cwd: '/',
    env: { PATH: process.env.PATH, ...env },
    stdio: ['ignore', 'ignore', 'pipe', 'pipe'],
  })
  const pipe = child.stdio[3] as Duplex
  const death = watchDeath(name, child, pipe)
  let pending: PromiseWithResolvers<Answer> | undefined
  readAnswers<Answer>(pipe, {
    take: (answer) => pending?.resolve(answer),
    fail: (cause) => death.cause(new Error(`The ${name} answered nonsense`, { cause })),
  })

  return {
    pid: child.pid,
    async ask(request, body, { sendMs, answerMs, signal }) {
      if (pending !== undefined) throw new Error(`The ${name} was asked two things at once`)
      const answered = Promise.withResolvers<Answer>()
      answered.promise.catch(() => {})
      pending = answered
      const fail = () => answered.reject(death.signal.reason)
      death.signal.addEventListener('abort', fail, { once: true })
      let timer: NodeJS.Timeout | undefined
      try {
        // Not with its reason: that one was about the request before.
        if (death.signal.aborted) throw new ProcessDied(`The ${name} is dead`)
        pipe.cork()
        pipe.write(toFrame(request))
        const failure = await sendBody(pipe, body, {
          ms: sendMs,
          signals: signal ? [death.signal, signal] : [death.signal],
        })
        pipe.write(toLength(failure === undefined ? endOfBody : abandoned))
        pipe.uncork()
        timer = setTimeout(() => death.cause(new AnswerLate(`No answer within ${answerMs} ms`)), answerMs)
        const answer = await answered.promise
        if (failure !== undefined) throw failure.error
        return answer
      } finally {
        clearTimeout(timer)
        death.signal.removeEventListener('abort', fail)
        pending = undefined
      }
    },
    isDead: () => death.signal.aborted,
    ended: death.ended,
    end: () => pipe.end(),
    kill: () => child.kill('SIGKILL'),
    giveUp: death.cause,
  }
}

/** Its signal is aborted, with the reason, as soon as the process is of no more use. */
function watchDeath(name: string, child: ChildProcess, pipe: Duplex) {
  const dead = new AbortController()
  const { promise: ended, resolve } = Promise.withResolvers<void>()
  let words = ''
  const cause = (error: Error) => {
    if (!dead.signal.aborted) dead.abort(error)
    child.kill('SIGKILL')
    pipe.destroy()
  }
  child.stderr?.setEncoding('utf8').on('data', (text: string) => {
    words = (words + text).slice(-2000)
  })
  child.once('error', (error) => {
    cause(new ProcessDied(`The ${name} did not start: ${error.message}`, { cause: error }))
    if (child.pid === undefined) resolve()
  })
  // Not 'exit': what it wrote before it ended is read first.
  child.once('close', (code, by) => {
    cause(new ProcessDied(`The ${name} ended with ${by ?? code}. ${words.trim()}`.trim()))
    resolve()
  })
  pipe.on('error', () => {})
  return { signal: dead.signal, ended, cause }
}

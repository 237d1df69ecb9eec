import { type ChildProcess, spawn } from 'node:child_process'
import { realpathSync } from 'node:fs'
import { dirname, join } from 'node:path'
import type { Duplex } from 'node:stream'
import { fileURLToPath } from 'node:url'
import type { Unprivileged } from '../../runtime/unprivileged.ts'
import { readAnswers } from './answers.ts'
import { sendBody } from './send-body.ts'
import { type Answer, abandoned, type BackendName, endOfBody, type Request, toFrame, toLength } from './wire.ts'

/** The process ended by itself or by another's hand. */
export class ProcessDied extends Error {}
/** It did not answer in time and was ended. */
export class AnswerLate extends Error {}

type Body = Buffer | AsyncIterable<Buffer>

export type YaraProcess = {
  /**
   * One at a time. When the body cannot be sent (`signal`, a failing read, `sendMs`) that is what is thrown, and the
   * process stays usable; without an answer for `answerMs` after sending it is killed.
   */
  ask(request: Request, body: Body, limits: { sendMs: number; answerMs: number; signal?: AbortSignal }): Promise<Answer>
  /** True as soon as it is of no more use, a moment before it has ended. */
  isDead(): boolean
  /** It said so with its last answer. */
  isWorn(): boolean
  /** Resolves when it has ended. */
  ended: Promise<void>
  /** Lets it finish what it does, then it ends by itself. */
  end(): void
  kill(): void
}

export type ProcessOptions = { backend: BackendName | undefined; runAs: Unprivileged | undefined }

/**
 * Rules are code of others and content is hostile, so both meet in a process that holds no secret, may write nothing and
 * may be killed at any time.
 */
export function startYaraProcess({ backend, runAs }: ProcessOptions): YaraProcess {
  const args = [...nodeFlags(), entry, ...(backend === undefined ? [] : [backend])]
  const { command, args: wrapped, ...user } = runAs?.wrap(process.execPath, args) ?? { command: process.execPath, args }
  const child = spawn(command, wrapped, {
    ...user,
    cwd: '/',
    env: { PATH: process.env.PATH },
    stdio: ['ignore', 'ignore', 'pipe', 'pipe'],
  })
  const pipe = child.stdio[3] as Duplex
  const death = watchDeath(child, pipe)
  let isWorn = false
  let pending: PromiseWithResolvers<Answer> | undefined
  readAnswers(pipe, {
    take: (answer) => pending?.resolve(answer),
    fail: (error) => death.cause(error),
  })

  return {
    async ask(request, body, { sendMs, answerMs, signal }) {
      if (pending !== undefined) throw new Error('The YARA process was asked two things at once')
      const answered = Promise.withResolvers<Answer>()
      answered.promise.catch(() => {})
      pending = answered
      const fail = () => answered.reject(death.signal.reason)
      death.signal.addEventListener('abort', fail, { once: true })
      let timer: NodeJS.Timeout | undefined
      try {
        // Not with its reason: that one was about the request before.
        if (death.signal.aborted) throw new ProcessDied('The YARA process is dead')
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
        isWorn = 'worn' in answer && answer.worn
        if (failure !== undefined) throw failure.error
        return answer
      } finally {
        clearTimeout(timer)
        death.signal.removeEventListener('abort', fail)
        pending = undefined
      }
    },
    isDead: () => death.signal.aborted,
    isWorn: () => isWorn,
    ended: death.ended,
    end: () => pipe.end(),
    kill: () => child.kill('SIGKILL'),
  }
}

/** Its signal is aborted, with the reason, as soon as the process is of no more use. */
function watchDeath(child: ChildProcess, pipe: Duplex) {
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
    cause(new ProcessDied(`The YARA process did not start: ${error.message}`, { cause: error }))
    if (child.pid === undefined) resolve()
  })
  // Not 'exit': what it wrote before it ended is read first.
  child.once('close', (code, by) => {
    cause(new ProcessDied(`The YARA process ended with ${by ?? code}. ${words.trim()}`.trim()))
    resolve()
  })
  pipe.on('error', () => {})
  return { signal: dead.signal, ended, cause }
}

const entry = fileURLToPath(new URL('child/main.ts', import.meta.url))

function nodeFlags(): string[] {
  const modules = ['koffi', '@virustotal/yara-x'].map(findModulesDir)
  const readable = [...new Set([dirname(dirname(entry)), ...modules])].map((path) => `${path}/*`)
  return [
    '--permission',
    '--allow-addons',
    ...[...readable, '/var/lib/dpkg/status'].map((path) => `--allow-fs-read=${path}`),
    '--disable-warning=SecurityWarning',
    // Content lies outside the heap; what a scan with YARA-X returns lies within.
    '--max-old-space-size=512',
  ]
}

/** The `node_modules` that holds a package, and beside it the package with its native part. */
function findModulesDir(name: string): string {
  const path = realpathSync(fileURLToPath(import.meta.resolve(name)))
  return join(path.slice(0, path.lastIndexOf('/node_modules/')), 'node_modules')
}

import { type ChildProcess, fork } from 'node:child_process'
import { once } from 'node:events'
import type { Socket } from 'node:net'
import type { Duplex } from 'node:stream'
import { setTimeout as pause } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { type Link, openLink } from '../../runtime/link.ts'
import type { Logger } from '../../runtime/logger.ts'
import {
  type CallDeps,
  type ControlMessage,
  linkDescriptor,
  makeCallHandlers,
  makeWireErrors,
  type ProcessSettings,
} from './wire.ts'

const program = fileURLToPath(new URL('main.ts', import.meta.url))

/** Time for a process to end after its last connection was cut; then it is killed. */
const endMs = 5000
/** Time in which a process must confirm a connection; then the copy of this process is closed. */
const confirmMs = 10_000
/** Time that a connection waits for a process to be ready. The start of one takes seconds on a busy machine. */
const waitMs = 60_000
/** Pause before a process is replaced that has ended without becoming ready; it doubles with each further one. */
const pauseMs = { first: 500, most: 10_000 }

/** Variables of the environment that HTTP processes get. Others may hold passwords, which they do not need. */
const passedVariables = /^(PATH|TZ|(NODE|UV|OPENSSL|SSL|LD|MALLOC)_.*)$/

type Deps = {
  settings: ProcessSettings
  calls: CallDeps
  isOutage(error: unknown): boolean
  log: Logger
  /** Called with each process that has become ready, and with its link. */
  onReady(link: Link): void
}

type HttpProcess = {
  child: ChildProcess
  link: Link
  /** Connections that the process has not confirmed yet. */
  passed: Map<number, Socket>
  ready: Promise<boolean>
  ended: Promise<void>
}

/** Starts the HTTP processes and replaces those that end. Resolves when all of them are ready. */
export async function openHttpProcesses(deps: Deps) {
  const running = new Set<HttpProcess>()
  const distribution = makeDistribution()
  let isStopping = false
  let isClosing = false

  async function keepRunning(onFirst: (isReady: boolean) => void) {
    for (let waitMs = pauseMs.first; !isClosing; ) {
      const isReady = await runOne(onFirst).catch((err: unknown) => {
        deps.log.error({ err }, 'an HTTP process could not be started')
        onFirst(false)
        return false
      })
      if (isClosing) return
      if (isReady) {
        waitMs = pauseMs.first
        continue
      }
      await pause(waitMs, undefined, { ref: false })
      waitMs = Math.min(pauseMs.most, 2 * waitMs)
    }
  }

  /** Runs a process until it ends. Returns whether it has become ready. */
  async function runOne(onFirst: (isReady: boolean) => void): Promise<boolean> {
    const started = await startProcess(deps)
    const { child, link } = started
    const { pid } = child
    if (isClosing) child.kill('SIGKILL')
    running.add(started)
    const isReady = await started.ready
    if (isReady) {
      deps.log.info({ pid }, 'HTTP process ready')
      deps.onReady(link)
      killWhenHung(link, () => {
        deps.log.error({ pid }, 'an HTTP process does not answer and is killed')
        child.kill('SIGKILL')
      })
      if (isStopping) send(child, { stop: true })
      distribution.add(started)
    }
    onFirst(isReady)
    await started.ended
    running.delete(started)
    distribution.remove(started)
    const { exitCode, signalCode: signal } = child
    if (!isClosing) deps.log.error({ pid, exitCode, signal }, 'an HTTP process has ended and is replaced')
    return isReady
  }

  function order(message: ControlMessage) {
    for (const { child } of running) send(child, message)
  }

  async function close(drainWithinMs = 0) {
    isClosing = true
    order({ drainWithinMs })
    await Promise.all([...running].map(({ child, ended }) => endWithin(child, ended, drainWithinMs + endMs)))
    distribution.close()
  }

  const starts = Array.from({ length: deps.settings.count }, () => {
    const { promise, resolve } = Promise.withResolvers<boolean>()
    void keepRunning(resolve)
    return promise
  })
  if ((await Promise.all(starts)).includes(false)) {
    await close()
    throw new Error('An HTTP process could not be started. The log has the reason.')
  }
  return {
    /** Passes a new connection to the next process. */
    pass: distribution.pass,
    /** Makes clients leave with their next request. */
    startStopping() {
      isStopping = true
      order({ stop: true })
    },
    /** Lets running requests finish within this time, and ends all processes. */
    close,
  }
}

/** Sends an order, which a process that has just ended need not get. */
function send(child: ChildProcess, message: ControlMessage) {
  if (child.connected) child.send(message, () => {})
}

async function startProcess({ settings, calls, isOutage }: Deps): Promise<HttpProcess> {
  const child = fork(program, [], {
    stdio: ['ignore', 'ignore', 'inherit', 'ipc', 'pipe'],
    env: Object.fromEntries(Object.entries(process.env).filter(([name]) => passedVariables.test(name))),
  })
  // Connections that could not be passed on get another process when this one has ended.
  child.on('error', () => {})
  // Rejects when the system has no process or file left for it.
  await once(child, 'spawn')
  const ready = Promise.withResolvers<boolean>()
  const passed = new Map<number, Socket>()
  const link: Link = openLink(child.stdio[linkDescriptor] as Duplex, {
    handlers: {
      ...makeCallHandlers(calls, () => link),
      settings: () => ({ value: settings }),
      ready() {
        ready.resolve(true)
        return undefined
      },
      accepted(id: number) {
        // Closes only the copy of this process.
        passed.get(id)?.destroy()
        passed.delete(id)
        return undefined
      },
    },
    ...makeWireErrors(isOutage),
  })
  const ended = new Promise<void>((resolve) => child.once('exit', () => resolve())).then(() => ready.resolve(false))
  return { child, link, passed, ready: ready.promise, ended }
}

/** Passes connections to the processes that are ready, in turn. */
function makeDistribution() {
  const processes: HttpProcess[] = []
  /** Connections that arrive while no process is ready. */
  const waiting = new Set<Socket>()
  let lastId = 0

  function pass(socket: Socket) {
    const id = ++lastId
    const next = processes[id % processes.length]
    if (next === undefined) {
      socket.setTimeout(waitMs)
      waiting.add(socket)
      socket.once('close', () => waiting.delete(socket))
      return
    }
    socket.setTimeout(confirmMs)
    const message: ControlMessage = { connection: id }
    next.passed.set(id, socket)
    socket.once('close', () => next.passed.delete(id))
    next.child.send(message, socket, { keepOpen: true }, () => {})
  }

  function passWaiting() {
    const sockets = [...waiting]
    waiting.clear()
    for (const socket of sockets) pass(socket)
  }

  return {
    pass(socket: Socket) {
      // A process may have received the connection nevertheless, and then keeps its own copy.
      socket.once('timeout', () => socket.destroy())
      pass(socket)
    },
    add(ready: HttpProcess) {
      processes.push(ready)
      passWaiting()
    },
    /** Connections that the process has not confirmed go to another one. */
    remove(ended: HttpProcess) {
      const at = processes.indexOf(ended)
      if (at !== -1) processes.splice(at, 1)
      for (const socket of ended.passed.values()) pass(socket)
    },
    close() {
      for (const socket of waiting) socket.destroy()
    },
  }
}

async function endWithin(child: ChildProcess, ended: Promise<void>, ms: number) {
  const timer = setTimeout(() => child.kill('SIGKILL'), ms)
  await ended
  clearTimeout(timer)
}

const checkMs = 10_000
/** Checks in a row without an answer, after which a process counts as hung. */
const mostMissed = 6

/**
 * Calls `kill` when a process has not answered for a minute. Checks are counted instead of the time since the last
 * answer, which also passes while the machine is suspended or this process is busy.
 */
export function killWhenHung({ call, closed }: Pick<Link, 'call' | 'closed'>, kill: () => void) {
  let missed = 0
  const noteAnswer = () => {
    missed = 0
  }
  const timer = setInterval(() => {
    if (missed === mostMissed) kill()
    if (missed++ === 0) void call('ping').then(noteAnswer, noteAnswer)
  }, checkMs)
  timer.unref()
  void closed.then(() => clearInterval(timer))
}

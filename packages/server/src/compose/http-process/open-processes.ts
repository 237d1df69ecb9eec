import { type ChildProcess, fork } from 'node:child_process'
import { once } from 'node:events'
import type { Socket } from 'node:net'
import type { Duplex } from 'node:stream'
import { setTimeout as pause } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { type Link, openLink } from '../../runtime/link.ts'
import type { Logger } from '../../runtime/logger.ts'
import { type CallDeps, makeCallHandlers } from './serve-calls.ts'
import { type ControlMessage, linkDescriptor, makeWireErrors, type ProcessSettings } from './wire.ts'

const program = fileURLToPath(import.meta.resolve('./main.ts'))

/** Time for a process to end after its last connection was cut; then it is killed. */
const endMs = 5000
/** Pause before a process is replaced that has ended without becoming ready; it doubles with each further one. */
const pauseMs = { first: 500, most: 10_000 }

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
  let isClosing = false

  async function keepRunning(onFirst: (isReady: boolean) => void) {
    for (let waitMs = pauseMs.first; !isClosing; ) {
      const started = startProcess(deps)
      running.add(started)
      const isReady = await started.ready
      if (isReady) {
        waitMs = pauseMs.first
        deps.onReady(started.link)
        distribution.add(started)
      }
      onFirst(isReady)
      await started.ended
      running.delete(started)
      distribution.remove(started)
      if (isClosing) return
      const { pid, exitCode, signalCode: signal } = started.child
      deps.log.error({ pid, exitCode, signal }, 'an HTTP process has ended and is replaced')
      if (isReady) continue
      await pause(waitMs, undefined, { ref: false })
      waitMs = Math.min(pauseMs.most, 2 * waitMs)
    }
  }

  function order(message: ControlMessage) {
    for (const { child } of running) if (child.connected) child.send(message)
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
    startStopping: () => order({ stop: true }),
    /** Lets running requests finish within this time, and ends all processes. */
    close,
  }
}

function startProcess({ settings, calls, isOutage }: Deps): HttpProcess {
  const child = fork(program, [], { stdio: ['ignore', 'ignore', 'inherit', 'ipc', 'pipe'] })
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
  // Connections that could not be passed on get another process when this one has ended.
  child.on('error', () => {})
  const ended = once(child, 'exit').then(() => ready.resolve(false))
  return { child, link, passed, ready: ready.promise, ended }
}

/** Passes connections to the processes that are ready, in turn. */
function makeDistribution() {
  const processes: HttpProcess[] = []
  /** Connections that arrive while no process is ready. */
  const waiting: Socket[] = []
  let lastId = 0

  function pass(socket: Socket) {
    const id = ++lastId
    const next = processes[id % processes.length]
    if (next === undefined) {
      waiting.push(socket)
      return
    }
    const message: ControlMessage = { connection: id }
    next.passed.set(id, socket)
    next.child.send(message, socket, { keepOpen: true }, () => {})
  }

  return {
    pass,
    add(ready: HttpProcess) {
      processes.push(ready)
      for (const socket of waiting.splice(0)) pass(socket)
    },
    /** Connections that the process has not confirmed go to another one. */
    remove(ended: HttpProcess) {
      const at = processes.indexOf(ended)
      if (at !== -1) processes.splice(at, 1)
      for (const socket of ended.passed.values()) pass(socket)
    },
    close() {
      for (const socket of waiting.splice(0)) socket.destroy()
    },
  }
}

async function endWithin(child: ChildProcess, ended: Promise<void>, ms: number) {
  const timer = setTimeout(() => child.kill('SIGKILL'), ms)
  await ended
  clearTimeout(timer)
}

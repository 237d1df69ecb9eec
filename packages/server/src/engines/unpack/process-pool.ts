import { EngineBusy, EngineDown } from '../../domain/ports/engines.ts'
import type { UnpackProcess } from './child-process.ts'

/** A process that is to be used by nobody else until it is given back. */
export type Lease = { process: UnpackProcess; release(options: { reuse: boolean }): void }

type Waiting = { begin(): void }

/** At most `slots` at once; started when needed, kept a while for the next. Who waits can go away. */
export function openProcessPool(deps: {
  start(): UnpackProcess
  semaphore: number
  maxWaiting: number
  idleMs: number
}) {
  const { start, semaphore, maxWaiting, idleMs } = deps
  const idle: { process: UnpackProcess; timer: NodeJS.Timeout }[] = []
  const running = new Set<UnpackProcess>()
  const waiting: Waiting[] = []
  let busy = 0
  let closed = false

  function throwIfClosed() {
    if (closed) throw new EngineDown('The unpacker is closed')
  }

  async function takeSlot(signal: AbortSignal) {
    signal.throwIfAborted()
    throwIfClosed()
    if (busy < semaphore) {
      busy++
      return
    }
    if (waiting.length >= maxWaiting)
      throw new EngineBusy(`${maxWaiting} containers are waiting to be unpacked already`)
    await new Promise<void>((resolve, reject) => {
      const one: Waiting = {
        begin() {
          signal.removeEventListener('abort', leave)
          resolve()
        },
      }
      const leave = () => {
        waiting.splice(waiting.indexOf(one), 1)
        // It was never begun: that says nothing of the container.
        reject(new EngineBusy('The unpacker had no time for it'))
      }
      signal.addEventListener('abort', leave, { once: true })
      waiting.push(one)
    })
  }

  /** The slot goes to who waits longest, without becoming free in between. */
  function giveSlot() {
    const next = waiting.shift()
    if (next === undefined) busy--
    else next.begin()
  }

  function findIdle(): UnpackProcess | undefined {
    for (let one = idle.pop(); one !== undefined; one = idle.pop()) {
      clearTimeout(one.timer)
      if (one.process.alive) return one.process
    }
    return undefined
  }

  function startOne(): UnpackProcess {
    const started = start()
    running.add(started)
    started.ended.then(() => running.delete(started))
    return started
  }

  function keep(process: UnpackProcess) {
    const one = { process, timer: setTimeout(end, idleMs).unref() }
    function end() {
      const at = idle.indexOf(one)
      if (at !== -1) idle.splice(at, 1)
      process.kill()
    }
    idle.push(one)
  }

  return {
    /**
     * `isNested`: for what was found in a container whose process is waiting for it. Such a one must not wait for a
     * slot, which might be the one it is to set free; a waiting process takes memory, but does not work.
     */
    async lease(signal: AbortSignal, { isNested }: { isNested: boolean }): Promise<Lease> {
      if (!isNested) await takeSlot(signal)
      const leave = isNested ? () => {} : giveSlot
      try {
        throwIfClosed()
        const process = findIdle() ?? startOne()
        let given = false
        return {
          process,
          release({ reuse }) {
            if (given) return
            given = true
            if (reuse && process.alive && !closed && idle.length < semaphore) keep(process)
            else process.kill()
            leave()
          },
        }
      } catch (error) {
        leave()
        throw error
      }
    },
    /** A process that ended because of us says nothing of the container it worked on. */
    throwIfClosed,
    /** Of those that run, for whoever watches them. */
    processIds: () => [...running].flatMap(({ pid }) => pid ?? []),
    /** Ends every process, at work or not. Who waits or works is told that the unpacker is down. */
    async close() {
      closed = true
      for (const { timer } of idle.splice(0)) clearTimeout(timer)
      for (const one of running) one.kill()
      await Promise.all([...running].map((one) => one.ended))
    },
  }
}

import type { Socket } from 'node:net'
import { makeSpeedGuard } from '../runtime/speed-guard.ts'

/** One connection, as its protocol sees it. */
export type Line = {
  /** What comes in. Ends when the client says that it will send no more; throws when the connection breaks. */
  chunks(): AsyncIterable<Buffer>
  /** What is awaited now must be there by then, however busily the client sends. */
  expectWithin(ms: number): void
  /** Content: silence and slowness end it, not its length. */
  expectContent(): void
  /** It is not the client who keeps us waiting. */
  expectNothing(): void
  /** Resolves when it is on its way. A client that takes nothing for a while loses the connection. */
  send(bytes: Buffer | string): Promise<void>
  /** In the middle of something: a stop waits for it. */
  setBusy(isBusy: boolean): void
  isStopping(): boolean
}

const silenceMs = 30_000

export function makeLine(socket: Socket, deps: { isStopping(): boolean; lateWords: string }) {
  let timer: NodeJS.Timeout | undefined
  let guard: ReturnType<typeof makeSpeedGuard> | undefined
  let isBusy = false

  const hangUpLate = () => {
    if (socket.destroyed) return
    socket.write(deps.lateWords)
    socket.destroySoon()
    // Who does not read would keep it open for ever.
    setTimeout(() => socket.destroy(), 1000).unref()
  }
  const wait = (ms: number | undefined) => {
    clearTimeout(timer)
    timer = ms === undefined ? undefined : setTimeout(hangUpLate, ms)
  }

  const line: Line = {
    async *chunks() {
      for await (const chunk of socket.iterator({ destroyOnReturn: false }) as AsyncIterable<Buffer>) {
        if (guard !== undefined) {
          wait(silenceMs)
          if (guard.add(chunk.length) !== undefined) hangUpLate()
        }
        yield chunk
      }
    },
    expectWithin(ms) {
      guard = undefined
      wait(ms)
    },
    expectContent() {
      guard = makeSpeedGuard()
      wait(silenceMs)
    },
    expectNothing() {
      guard = undefined
      wait(undefined)
    },
    async send(bytes) {
      if (socket.destroyed) return
      const patience = setTimeout(() => socket.destroy(), silenceMs)
      // Not before the system has it: its memory may be used for something else afterwards.
      await new Promise<void>((resolve) => socket.write(bytes, () => resolve()))
      clearTimeout(patience)
    },
    setBusy(value) {
      isBusy = value
    },
    isStopping: deps.isStopping,
  }
  return { line, isBusy: () => isBusy, stopWaiting: () => wait(undefined) }
}

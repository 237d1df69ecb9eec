import type { Socket } from 'node:net'
import { makeSpeedGuard } from '../runtime/speed-guard.ts'

/** A connection of a client, as the protocol handlers see it. */
export type Connection = {
  /** Yields the bytes of the client. Ends when the client closes its half; throws when the connection breaks. */
  chunks(): AsyncIterable<Buffer>
  /** Sets a deadline for the current command. Bytes of the client do not extend it. */
  expectWithin(ms: number): void
  /** Guards content: silence and slowness end the connection, length does not. */
  expectContent(): void
  /** Stops all deadlines while the client waits for the service. */
  expectNothing(): void
  /** Resolves when the bytes are written. A client that reads nothing for 30 s loses the connection. */
  send(bytes: Buffer | string): Promise<void>
  /** Marks the connection as busy: stopping the listener waits for it. */
  setBusy(isBusy: boolean): void
  isStopping(): boolean
}

const silenceMs = 30_000

export function makeConnection(socket: Socket, deps: { isStopping(): boolean; timeoutReply: string }) {
  let timer: NodeJS.Timeout | undefined
  let guard: ReturnType<typeof makeSpeedGuard> | undefined
  let isBusy = false

  const closeAfterTimeout = () => {
    if (socket.destroyed) return
    socket.write(deps.timeoutReply)
    socket.destroySoon()
    // A client that does not read the reply would otherwise keep the socket open.
    setTimeout(() => socket.destroy(), 1000).unref()
  }
  const setTimer = (ms: number | undefined) => {
    clearTimeout(timer)
    timer = ms === undefined ? undefined : setTimeout(closeAfterTimeout, ms)
  }

  const connection: Connection = {
    async *chunks() {
      for await (const chunk of socket.iterator({ destroyOnReturn: false }) as AsyncIterable<Buffer>) {
        if (guard !== undefined) {
          setTimer(silenceMs)
          if (guard.add(chunk.length) !== undefined) closeAfterTimeout()
        }
        yield chunk
      }
    },
    expectWithin(ms) {
      guard = undefined
      setTimer(ms)
    },
    expectContent() {
      guard = makeSpeedGuard()
      setTimer(silenceMs)
    },
    expectNothing() {
      guard = undefined
      setTimer(undefined)
    },
    async send(bytes) {
      if (socket.destroyed) return
      const writeTimer = setTimeout(() => socket.destroy(), silenceMs)
      // Waits for the write callback, because callers reuse the memory of the bytes afterwards.
      await new Promise<void>((resolve) => socket.write(bytes, () => resolve()))
      clearTimeout(writeTimer)
    },
    setBusy(value) {
      isBusy = value
    },
    isStopping: deps.isStopping,
  }
  return { connection, isBusy: () => isBusy, stopTimer: () => setTimer(undefined) }
}

import { createServer, type Socket } from 'node:net'
import { type Line, makeLine } from './connection.ts'

const lingerMs = 5000

type Deps = {
  host: string
  port: number
  maxConnections: number
  /** Last words to one who was too slow, and to one too many. */
  words: { late: string; full: string }
  /** Returns when there is nothing more to say; whatever it throws ends the connection. */
  serve(line: Line): Promise<void>
  onFailure(error: unknown): void
}

/** A port, its connections, and their end. */
export async function openListener(deps: Deps) {
  const open = new Map<Socket, { isBusy(): boolean; ended: Promise<void> }>()
  let stopping = false
  let cut: NodeJS.Timeout | undefined

  // Half open: a client may say that it is done and still wait for the answer.
  const server = createServer({ allowHalfOpen: true, noDelay: true }, (socket) => {
    // What goes wrong with a connection is seen where it is read.
    socket.on('error', () => {})
    if (open.size >= deps.maxConnections || stopping) {
      socket.end(deps.words.full)
      socket.destroySoon()
      return
    }
    const { line, isBusy, stopWaiting } = makeLine(socket, {
      isStopping: () => stopping,
      lateWords: deps.words.late,
    })
    const ended = run(socket, line).finally(() => {
      stopWaiting()
      open.delete(socket)
    })
    open.set(socket, { isBusy, ended })
  })

  async function run(socket: Socket, line: Line) {
    try {
      await deps.serve(line)
      line.expectNothing()
      await hangUp(socket)
    } catch (error) {
      // A client that leaves is no failure of ours.
      if (!socket.destroyed) deps.onFailure(error)
      socket.destroy()
    }
  }

  await new Promise<void>((resolve, reject) => {
    server.once('error', reject)
    server.listen(deps.port, deps.host, resolve)
  })
  const address = server.address()

  function startStopping(cutAfterMs: number) {
    if (stopping) return
    stopping = true
    server.close()
    for (const [socket, { isBusy }] of open) if (!isBusy()) socket.destroySoon()
    cut = setTimeout(() => {
      for (const socket of open.keys()) socket.destroy()
    }, cutAfterMs)
  }

  return {
    port: typeof address === 'object' && address !== null ? address.port : deps.port,
    countConnections: () => open.size,
    /** Nobody new gets in. Those in the middle of something may finish it until then. */
    startStopping,
    async close() {
      startStopping(0)
      await Promise.all([...open.values()].map(({ ended }) => ended))
      clearTimeout(cut)
    },
  }
}

export type Listener = Awaited<ReturnType<typeof openListener>>

/** A client that is still sending would lose the answer to a reset connection, so the rest is read for a moment. */
async function hangUp(socket: Socket) {
  if (socket.destroyed) return
  const giveUp = setTimeout(() => socket.destroy(), lingerMs)
  const closed = new Promise<void>((resolve) => socket.once('close', () => resolve()))
  socket.end()
  socket.resume()
  await closed
  clearTimeout(giveUp)
}

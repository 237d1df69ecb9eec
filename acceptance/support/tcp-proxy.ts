import { connect, createServer, type NetConnectOpts, type Socket } from 'node:net'
import { setTimeout as pause } from 'node:timers/promises'

/**
 * `cut` closes connections and refuses new ones; `hold` silently drops all bytes; `mute` passes requests on
 * and closes the connection instead of passing on the response.
 */
type Mode = 'pass' | 'cut' | 'hold' | 'mute'

/** A TCP proxy that stands for a network, which can be slow, silent or down. */
export async function openTcpProxy(target: NetConnectOpts) {
  const pairs = new Set<[Socket, Socket]>()
  let mode: Mode = 'pass'
  let delayMs = 0
  let receivedBytes = 0
  let lastWords: string | undefined

  const server = createServer((near) => {
    if (mode === 'cut') {
      near.destroy()
      return
    }
    const far = connect(target)
    const pair: [Socket, Socket] = [near, far]
    pairs.add(pair)
    for (const socket of pair) {
      socket.on('error', () => {})
      socket.once('close', () => {
        for (const other of pair) other.destroy()
        pairs.delete(pair)
      })
    }
    near.on('data', (bytes) => {
      receivedBytes += bytes.length
      if (lastWords !== undefined && bytes.includes(lastWords)) mode = 'mute'
      void pass(near, far, bytes)
    })
    far.on('data', (bytes) => {
      if (mode === 'mute') near.destroy()
      else void pass(far, near, bytes)
    })
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const address = server.address()

  /** Keeps the bytes of one direction in order: the sender is paused while a piece is delayed. */
  async function pass(from: Socket, to: Socket, bytes: Buffer) {
    if (mode === 'hold') return
    if (delayMs > 0) {
      from.pause()
      await pause(delayMs)
      from.resume()
    }
    to.write(bytes)
  }

  return {
    port: typeof address === 'object' && address !== null ? address.port : 0,
    setMode(next: Mode) {
      mode = next
      lastWords = undefined
      if (mode === 'cut') for (const [near] of pairs) near.destroy()
    },
    /** Switches to `mute` as soon as a request that contains these words was passed on. */
    muteAfter(words: string) {
      lastWords = words
    },
    /** Delays each direction by this time. */
    setDelay(ms: number) {
      delayMs = ms
    },
    countConnections: () => pairs.size,
    /** Bytes that clients have sent. */
    countReceived: () => receivedBytes,
    async close() {
      mode = 'cut'
      for (const [near] of pairs) near.destroy()
      await new Promise((resolve) => server.close(resolve))
    },
  }
}

/** Opens a proxy to a database; `url` leads through it. */
export async function openDatabaseProxy(url: string) {
  // The URL of a socket has no host, which `URL` requires.
  const parsed = new URL(url.replace('@/', '@localhost/'))
  const socketDir = parsed.searchParams.get('host')
  const proxy = await openTcpProxy(
    socketDir === null
      ? { host: parsed.hostname, port: Number(parsed.port || 5432) }
      : { path: `${socketDir}/.s.PGSQL.5432` },
  )
  parsed.searchParams.delete('host')
  parsed.hostname = '127.0.0.1'
  parsed.port = String(proxy.port)
  return { ...proxy, url: parsed.href }
}

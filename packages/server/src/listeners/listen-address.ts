import { chmodSync, chownSync } from 'node:fs'
import { lstat, unlink } from 'node:fs/promises'
import { connect, type Server } from 'node:net'
import { FileLockUnavailable, takeFileLock } from '../runtime/files.ts'

/** An address to listen on: a TCP port, or the path of a unix socket. */
export type ListenAddress = { host: string; port: number } | { path: string; access: SocketAccess }

/** Owner and permissions of a socket file. Whoever may write to it may connect. Undefined keeps the owner. */
export type SocketAccess = { mode: number; uid: number | undefined; gid: number | undefined }

/** Starts to listen. Returns a function that gives up the path of a unix socket; the server removes the file itself. */
export async function listenOn(server: Server, address: ListenAddress): Promise<() => void> {
  if (!('path' in address)) {
    await startServer(server, address)
    return () => {}
  }
  const { path, access } = address
  const release = lockPath(path)
  try {
    await removeStaleSocket(path)
    await startServer(server, { path }, { umask: 0o077 })
    setAccess(server, path, access)
    return release
  } catch (error) {
    release()
    throw error
  }
}

/**
 * Starts to listen. Node creates a socket file and accepts connections to it within the call of `listen`, so the mask
 * holds for that file and for no other that this thread creates; what other threads create meanwhile stays usable.
 */
function startServer(server: Server, options: Parameters<Server['listen']>[0], { umask }: { umask?: number } = {}) {
  return new Promise<void>((resolve, reject) => {
    server.once('error', reject)
    const previous = umask === undefined ? undefined : process.umask(umask)
    try {
      server.listen(options, () => {
        server.removeListener('error', reject)
        resolve()
      })
    } finally {
      if (previous !== undefined) process.umask(previous)
    }
  })
}

/** Two services that start at the same time would each take the socket of the other for one that was left behind. */
function lockPath(path: string): () => void {
  try {
    const lock = takeFileLock(`${path}.lock`)
    if ('release' in lock) return lock.release
    throw new Error(`process ${lock.heldBy.pid} uses ${path} already`)
  } catch (error) {
    if (error instanceof FileLockUnavailable) return () => {}
    throw error
  }
}

/** Removes the socket that a killed service left behind. Throws for any other file, and for a socket that is in use. */
async function removeStaleSocket(path: string) {
  const stats = await lstat(path).catch((error: NodeJS.ErrnoException) => {
    if (error.code === 'ENOENT') return undefined
    throw error
  })
  if (stats === undefined) return
  if (!stats.isSocket()) throw new Error(`${path} exists and is not a socket`)
  const fault = await tryConnecting(path)
  if (fault === undefined) throw new Error(`another process listens on ${path}`)
  // Only a refusal proves that the socket belongs to no process; one whose queue is full answers with EAGAIN.
  if (fault !== 'ECONNREFUSED') throw new Error(`another process may listen on ${path} (${fault})`)
  await unlink(path)
}

/** Returns undefined when a process accepts the connection, otherwise the code of the error. */
function tryConnecting(path: string): Promise<string | undefined> {
  return new Promise((resolve) => {
    const socket = connect({ path })
    socket.once('connect', () => {
      socket.destroy()
      resolve(undefined)
    })
    socket.once('error', (error: NodeJS.ErrnoException) => resolve(error.code ?? error.message))
  })
}

/** Opens the socket to other users. Until then only the user of the service can connect. */
function setAccess(server: Server, path: string, { mode, uid, gid }: SocketAccess) {
  try {
    // -1 keeps the owner or the group. The mode comes last, so that it never holds for another owner.
    if (uid !== undefined || gid !== undefined) chownSync(path, uid ?? -1, gid ?? -1)
    chmodSync(path, mode)
  } catch (error) {
    server.close()
    throw error
  }
}

import { closeSync, constants, ftruncateSync, openSync, readFileSync, writeSync } from 'node:fs'
import { hostname } from 'node:os'
import koffi from 'koffi'

/** The file system has no locks. */
export class FileLockUnavailable extends Error {}

/** Process and host that hold a lock, as the holder wrote them. */
type Holder = { pid: string; host: string }

const exclusive = 2
const withoutWaiting = 4

const flock = koffi.load(null).func('int flock(int descriptor, int operation)')

/**
 * Takes the lock of a file, which the kernel releases when this process ends in any way. Child processes do not inherit
 * it, because Node opens files close-on-exec. Returns the holder if another process has the lock.
 */
export function takeFileLock(path: string): { release(): void } | { heldBy: Holder } {
  const descriptor = openSync(path, constants.O_RDWR | constants.O_CREAT | constants.O_NOFOLLOW, 0o600)
  if (flock(descriptor, exclusive | withoutWaiting) !== 0) {
    const code = koffi.errno()
    const [pid = '', host = ''] = readFileSync(descriptor, 'utf8').trim().split(' ')
    closeSync(descriptor)
    if (code === koffi.os.errno.EAGAIN) return { heldBy: { pid: pid || 'unknown', host } }
    throw new FileLockUnavailable(`the lock of ${path} cannot be taken (error ${code})`)
  }
  try {
    ftruncateSync(descriptor)
    writeSync(descriptor, `${process.pid} ${hostname()}\n`, 0)
  } catch {
    // The disk is full. The lock holds without a name, and the next write reports the disk.
  }
  return { release: () => closeSync(descriptor) }
}

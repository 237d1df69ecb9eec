/**
 * The program of an unpacking process, started by open-unpacker.ts. Strangers' containers meet a large C++ program here.
 * That program runs as WebAssembly without a file system, in a process that cannot write files, start programs, or read
 * anything but its own source. Its only way out is the socket to the service.
 */
import { openChildPipe } from '../../child-process/child-pipe.ts'
import type { Job, JobEnd } from '../unpack-job.ts'
import { loadSevenZip } from './seven-zip.ts'

/** A process that holds more after a job is replaced, because V8 does not always free the memory of WebAssembly. */
const maxIdleBytes = 256 * 2 ** 20

const pipe = openChildPipe<Job, JobEnd>()
const sevenZip = loadSevenZip()

for (let received = pipe.readRequest(); received !== undefined; received = pipe.readRequest()) {
  const end = await sevenZip.unpack(received.request, pipe)
  // Frees the memory of the finished instance now, so that the next job does not come on top of it.
  globalThis.gc?.()
  pipe.answer({ ...end, worn: process.memoryUsage.rss() >= maxIdleBytes })
}

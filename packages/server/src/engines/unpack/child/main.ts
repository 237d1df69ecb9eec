/**
 * The program of an unpacking process, started by open-unpacker.ts. Here a large C++ program parses untrusted
 * containers. The program runs as WebAssembly without a file system, in a process that cannot write files, start
 * programs, or read anything but its own source. Its only way out is the socket to the service.
 */
import { openChildPipe } from '../../child-process/child-pipe.ts'
import type { Job, JobAnswer } from '../unpack-job.ts'
import { loadSevenZip } from './seven-zip.ts'

/** A process that holds more after a job is replaced, because V8 does not always free the memory of WebAssembly. */
const maxIdleBytes = 256 * 2 ** 20

const pipe = openChildPipe<Job, JobAnswer>()
const sevenZip = loadSevenZip()

for (let received = pipe.readRequest(); received !== undefined; received = pipe.readRequest()) {
  const answer = await sevenZip.unpack(received.request, pipe)
  // Frees the memory of the finished instance now, so that the next job does not come on top of it.
  globalThis.gc?.()
  pipe.answer({ ...answer, needsReplacement: process.memoryUsage.rss() >= maxIdleBytes })
}

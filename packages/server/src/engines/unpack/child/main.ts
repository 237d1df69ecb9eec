/**
 * The program of an unpacking process, started by open-unpacker.ts. Here the readers and a large C++ program parse
 * untrusted content. That program runs as WebAssembly without a file system, in a process that cannot write files,
 * start programs, or read anything but its own source. Its only way out is the socket to the service.
 */
import { openChildPipe } from '../../child-process/child-pipe.ts'
import { collectGarbage } from '../../child-process/late-flags.ts'
import type { Job, JobAnswer } from '../unpack-job.ts'
import { openMembers } from './members.ts'
import { readContent } from './read-content.ts'
import { openSource, type Source } from './reader.ts'
import { loadSevenZip } from './seven-zip.ts'

/** A process that holds more after a job is replaced, because V8 does not always free the memory of WebAssembly. */
const maxIdleBytes = 256 * 2 ** 20
/** Memory outside of the heap, above which it is freed after a job. Freeing takes 14 ms, reading a small file 1 ms. */
const maxKeptBytes = 32 * 2 ** 20

const pipe = openChildPipe<Job, JobAnswer>()
let sevenZip: ReturnType<typeof loadSevenZip> | undefined

for (let received = pipe.readRequest(); received !== undefined; received = pipe.readRequest()) {
  const { request } = received
  const source = openSource(request.contentBytes, pipe.fetch)
  const readWithSevenZip = (content: Source, type: string) => {
    // Most content needs no 7-Zip, and compiling it takes longer than reading.
    sevenZip ??= loadSevenZip()
    return sevenZip.read(content, type, pipe)
  }
  const answer = await readContent(source, openMembers(pipe, request), readWithSevenZip)
  // Frees the memory of a finished instance now, so that the next job does not come on top of it.
  if (process.memoryUsage().external > maxKeptBytes) collectGarbage()
  pipe.answer({ ...answer, needsReplacement: process.memoryUsage.rss() >= maxIdleBytes })
}

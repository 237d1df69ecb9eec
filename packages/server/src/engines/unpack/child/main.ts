/**
 * The process that opens containers: bytes of strangers, read by a large C++ program. That program runs as WebAssembly
 * without a file system; this process runs without rights to write files, start programs or read anything but its own
 * source; its only way out are two pipes. When the service ends, the pipes close and so does this.
 */
import { openService } from './service-pipe.ts'
import { loadSevenZip } from './seven-zip.ts'

const service = openService()
const sevenZip = loadSevenZip()

for (let job = service.nextJob(); job !== undefined; job = service.nextJob()) {
  const end = await sevenZip.unpack(job, service)
  // What the finished instance held is freed now, not on top of the next job's.
  globalThis.gc?.()
  service.send('end', Buffer.from(JSON.stringify({ ...end, residentBytes: process.memoryUsage.rss() })))
  service.flush()
}

import { existsSync, writeFileSync } from 'node:fs'
import { dirname } from 'node:path'
import { after, beforeEach } from 'node:test'
import { isMainThread } from 'node:worker_threads'
import { readProcessorMs } from './processor-time.ts'

/**
 * Loaded into each test process. Ends the process when its tests are over but something that they opened keeps it
 * alive, such as a server whose `after` hook never ran: the file then fails instead of holding up the run.
 */
const graceMs = 60_000
let timer: NodeJS.Timeout | undefined

after(() => {
  timer = setTimeout(() => {
    process.stderr.write(`Still open after the last test: ${process.getActiveResourcesInfo().join(', ')}\n`)
    process.exit(1)
  }, graceMs)
  timer.unref()
})
// A file with a top-level await may register more tests after Node has run the hook above.
beforeEach(() => clearTimeout(timer))
// Handlers of the `exit` event end the services of the test; without this line a signal would skip them.
// A handler that fails, as of a browser that is just starting, must not keep the others from ending theirs.
process.once('SIGTERM', () => {
  for (const handle of process.rawListeners('exit')) {
    try {
      handle.call(process, 143)
    } catch (error) {
      process.stderr.write(`A handler of the exit failed: ${error}\n`)
    }
  }
  process.removeAllListeners('exit')
  process.exit(143)
})
// Programs that a test starts with the options of this process write first, so that the test process has the last word.
// A run that was interrupted has removed the directory, and an error in this handler would keep the process alive.
process.once('exit', () => {
  const file = process.env.ASSAY_TEST_PROCESSOR_TIME
  if (file !== undefined && isMainThread && existsSync(dirname(file))) writeFileSync(file, String(readProcessorMs()))
})

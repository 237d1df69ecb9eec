import { writeFileSync } from 'node:fs'
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
process.once('SIGTERM', () => process.exit(143))
// Programs that a test starts with the options of this process write first, so that the test process has the last word.
process.once('exit', () => {
  const file = process.env.ASSAY_TEST_PROCESSOR_TIME
  if (file !== undefined && isMainThread) writeFileSync(file, String(readProcessorMs()))
})

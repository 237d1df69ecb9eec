import { openTestClamd } from './clamd-support.ts'

/** Opens a clamd on the given directory, prints its process id and its fault, and waits to be killed. */
const { pid, findFault } = await openTestClamd(process.argv[2] ?? '')
process.stdout.write(`${JSON.stringify({ pid, fault: findFault() })}\n`)
setInterval(() => {}, 60_000)

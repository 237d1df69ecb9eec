/** Started by command.test.ts, which kills it: runs a program of Node that does not end, on a file. */
import { newContent } from '../scans/scan-support.ts'
import { openAdapter } from './external-support.ts'

const [dataDir = '', code = ''] = process.argv.slice(2)
const adapter = await openAdapter(
  { kind: 'command', program: process.execPath, args: ['-e', code, '{file}'] },
  { dataDir },
)
await adapter.scan(newContent('clear content'), { signal: new AbortController().signal, fileName: 'a' })

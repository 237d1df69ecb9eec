import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { openMasterKey } from '../../src/blobs/master-key.ts'

/** Opens the key when it reads a line, so that many processes open it at once, and prints a data key that it sealed. */
const dataDir = process.argv[2] ?? ''
process.stdout.write('ready\n')
process.stdin.once('data', () => {
  const master = openMasterKey(undefined, dataDir)
  const file = readFileSync(join(dataDir, 'master.key'), 'utf8').trim()
  process.stdout.write(
    `${JSON.stringify({ file, sealed: master.seal(Buffer.alloc(32, 'k'), ['test']).toString('hex') })}\n`,
  )
  process.stdin.destroy()
})

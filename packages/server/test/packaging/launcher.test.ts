import assert from 'node:assert/strict'
import { execFile } from 'node:child_process'
import { test } from 'node:test'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'

const launcher = fileURLToPath(new URL('../../../../packaging/assay', import.meta.url))
/** Prints the modules of Node that remove types. */
const listCompilers = `process.on('exit', () => {
  process.stderr.write(JSON.stringify(process.moduleLoadList.filter((name) => name.includes('amaro'))))
})`

test('the compiler that removes types is not loaded by a start whose sources are in the compile cache', async () => {
  const env = {
    PATH: process.env.PATH,
    NODE_OPTIONS: `--import=data:text/javascript,${encodeURIComponent(listCompilers)}`,
  }
  // The first start fills the cache.
  await promisify(execFile)(launcher, ['--version'], { env })
  const { stderr } = await promisify(execFile)(launcher, ['--version'], { env })
  assert.equal(stderr, '[]')
})

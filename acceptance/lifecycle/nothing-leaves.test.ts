import assert from 'node:assert/strict'
import { execFile, spawnSync } from 'node:child_process'
import { test } from 'node:test'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { findProgram } from '../../packages/server/src/engines/clamav/installation.ts'
import { alreadyTested } from '../support/scanning.ts'

const program = fileURLToPath(new URL('../support/run-in-private-network.ts', import.meta.url))
const namespaces = ['--net', '--mount', '--']
const canIsolate = spawnSync('unshare', [...namespaces, 'ip', 'link', 'add', 'canary', 'type', 'veth']).status === 0
const skip = canIsolate ? alreadyTested : 'this needs root, network namespaces and iproute2'

test('a service asks nothing of the network but what its documents list', { skip }, async () => {
  const hasFreshclam = findProgram('freshclam') !== undefined
  const args = [...namespaces, process.execPath, program, hasFreshclam ? 'freshclam' : 'none']
  const { stdout } = await promisify(execFile)('unshare', args, { maxBuffer: 64 * 2 ** 20 })
  const { verdicts, packets, isCounting, names, mirror, origin, webhooks } = JSON.parse(stdout)
  assert.deepEqual(verdicts, ['threat', 'clean', 'clean', 'threat', 'clean'])
  // A delivery that is under way when the clock speeds up may be repeated.
  assert.ok(webhooks >= 2)
  assert.deepEqual(origin.sort(), ['/file', '/file', '/picture', '/picture'])
  // docs/faq.md lists these: the mirror, and what callers name.
  const documented = ['mirror.canary.test', 'origin.canary.test', 'receiver.canary.test']
  assert.deepEqual(names, hasFreshclam ? documented : documented.slice(1))
  for (const path of mirror) assert.match(path, /^\/[\w.-]+\.(cvd|cdiff|cld|sign)$/)
  assert.equal(packets, 0, 'packets to other addresses')
  assert.ok(isCounting, 'the device that counts packets works')
})

import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import { test } from 'node:test'
import { toJailed } from '../../src/engines/jail/jail.ts'
import { policies } from '../../src/engines/jail/policy.ts'

const { command, args } = toJailed(
  policies.unpacker({ node: process.execPath, reads: [] }),
  ['-e', 'console.log("it runs")'],
  { hasSocket: false, keepsCapability: false },
)

test('a parser does not start once the process that launched it is gone', () => {
  assert.equal(spawnSync(command, args, { encoding: 'utf8' }).stdout, 'it runs\n')
  // The shell stands for the process that adopts the orphans of a killed service.
  const orphan = spawnSync('sh', ['-c', '"$@"; echo "ended with $?"', 'sh', command, ...args], { encoding: 'utf8' })
  assert.equal(orphan.stdout, 'ended with 1\n')
})

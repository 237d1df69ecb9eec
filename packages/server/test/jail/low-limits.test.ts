import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import { test } from 'node:test'
import { toJailed } from '../../src/engines/jail/jail.ts'
import { policies } from '../../src/engines/jail/policy.ts'

test('a parser starts where the limits of the operator are lower than those of the jail', () => {
  const { command, args } = toJailed(policies.unpacker({ node: process.execPath, reads: [] }), ['--version'], {
    hasSocket: false,
    keepsCapability: false,
  })
  const script = 'ulimit -s 4096 && ulimit -n 100 && exec "$@"'
  const { stdout, stderr } = spawnSync('sh', ['-c', script, 'sh', command, ...args], { encoding: 'utf8' })
  assert.deepEqual({ stdout, stderr }, { stdout: `${process.version}\n`, stderr: '' })
})

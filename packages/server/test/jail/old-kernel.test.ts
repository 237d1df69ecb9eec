import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'node:test'
import { fileURLToPath } from 'node:url'
import { encodeFilter } from '../../src/engines/jail/filter.ts'
import { toJailed } from '../../src/engines/jail/jail.ts'
import { policies } from '../../src/engines/jail/policy.ts'

const landlockCreateRuleset = 444
const main = fileURLToPath(new URL('../../src/main.ts', import.meta.url))
const sandbox = new URL('../../src/compose/sandbox.ts', import.meta.url).href

/** Runs Node as on a kernel that does not have the call to create a ruleset: by a filter that answers ENOSYS. */
function runWithoutLandlock(args: string[], env: Record<string, string> = {}) {
  const { command, args: words } = toJailed(policies.unpacker({ node: process.execPath, reads: [] }), [], {
    hasSocket: false,
    keepsCapability: false,
  })
  const jail = {
    ...JSON.parse(words.at(-1) ?? ''),
    command: [process.execPath, '--no-warnings', ...args],
    landlock: 0,
    hasFilter: true,
    limits: [],
    ...encodeFilter([
      [0x20, 0, 0, 0],
      [0x15, 0, 1, landlockCreateRuleset],
      [0x06, 0, 0, 0x00050000 | 38],
      [0x06, 0, 0, 0x7fff0000],
    ]),
  }
  const options = { encoding: 'utf8' as const, env: { PATH: process.env.PATH, ...env } }
  return spawnSync(command, words.with(-1, JSON.stringify(jail)), options)
}

test('a kernel without Landlock is named in a warning, and refused where the sandbox is required', () => {
  const script = `
    const { checkSandbox } = await import(${JSON.stringify(sandbox)})
    const warnings = []
    const log = { warn: (text) => warnings.push(text) }
    const fault = checkSandbox({ sandbox: 'auto' }, log).findFault()
    let refusal
    try { checkSandbox({ sandbox: 'required' }, log) } catch (error) { refusal = error.constructor.name + ': ' + error.message }
    console.log(JSON.stringify({ fault, warnings, refusal }))
  `
  const { stdout, stderr } = runWithoutLandlock(['--input-type=module', '-e', script])
  assert.equal(stderr, '')
  const { fault, warnings, refusal } = JSON.parse(stdout)
  assert.match(fault, /^Landlock is not available/)
  assert.deepEqual(warnings, [`the sandbox of the engines is incomplete: ${fault}`])
  assert.match(refusal, /^OperatorMistake: Landlock is not available.*ASSAY_SANDBOX=auto/)
})

test('doctor names what the kernel lacks', (t) => {
  const dir = mkdtempSync(join(tmpdir(), 'assay-doctor-'))
  t.after(() => rmSync(dir, { recursive: true }))
  const env = { ASSAY_DATA_DIR: dir, ASSAY_DATABASE_URL: 'postgres://nobody@127.0.0.1:1/none', ASSAY_PORT: '0' }
  const { stdout, status } = runWithoutLandlock([main, 'doctor'], env)
  assert.match(stdout, /^FAULT {2}sandbox: Landlock is not available/m)
  assert.equal(status, 1)
})

import assert from 'node:assert/strict'
import { execFile } from 'node:child_process'
import { once } from 'node:events'
import { chmodSync, mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs'
import { createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'node:test'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { chooseConfinement } from '../../src/engines/nsfw/confinement.ts'

const probe = fileURLToPath(new URL('child-probe.ts', import.meta.url))

test('an image process can read no file of others, write none, start nothing and become nobody else', async (t) => {
  const { scanner, confinement, wasReached, dir } = await runProbe(t)
  const { user, ...attempts } = scanner
  const refused = 'ERR_ACCESS_DENIED'
  assert.deepEqual(attempts, {
    'read a file': refused,
    'write a file': refused,
    'start a program': refused,
    'start a thread': refused,
    'reach the network': confinement.hasNetwork ? 'done' : 'ENETUNREACH',
    'take 4 GB': 'Array buffer allocation failed',
    'become root': 'refused',
    'write past Node': 'refused',
  })
  if (process.getuid?.() === 0) assert.notEqual(user, '0')
  assert.equal(wasReached, confinement.hasNetwork)
  for (const name of readdirSync(dir)) assert.equal(readFileSync(join(dir, name)).length, 0)
})

async function runProbe(t: { after(work: () => void): void }) {
  const dir = mkdtempSync(join(tmpdir(), 'assay-probe-'))
  // Everybody may write here, so that it is not the owner of the directory who refuses.
  chmodSync(dir, 0o777)
  let wasReached = false
  const server = createServer(() => {
    wasReached = true
  }).listen(0, '127.0.0.1')
  t.after(() => {
    server.close()
    rmSync(dir, { recursive: true })
  })
  await once(server, 'listening')
  const address = server.address()
  const port = typeof address === 'object' ? address?.port : undefined
  const confinement = chooseConfinement({ modelDirs: [], maxDataMb: 2048 })
  const { command, args } = confinement.wrap(probe)
  const { stdout } = await promisify(execFile)(command, [...args, `${port}`, dir], { cwd: '/' })
  const scanner: Record<string, string> = JSON.parse(stdout)
  return { scanner, confinement, wasReached, dir }
}

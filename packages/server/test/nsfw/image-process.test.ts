import assert from 'node:assert/strict'
import { execFile } from 'node:child_process'
import { once } from 'node:events'
import { chmodSync, globSync, mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs'
import { createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { describe, test } from 'node:test'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { chooseConfinement, makeCores, toCores } from '../../src/engines/nsfw/confinement.ts'

const probe = fileURLToPath(new URL('child-probe.ts', import.meta.url))

test('an image process cannot read other files, write files, start programs or change its user', async (t) => {
  const { scanner, signal, wasReached, dir } = await runProbe(t)
  const { user, telemetry, ...attempts } = scanner
  const refused = 'ERR_ACCESS_DENIED'
  assert.deepEqual(attempts, {
    'read a file': refused,
    'write a file': refused,
    'start a program': refused,
    'start a thread': refused,
    'take 4 GB': 'Array buffer allocation failed',
    'collect garbage': 'done',
    'become root': 'refused',
    'write past Node': 'refused',
  })
  assert.equal(telemetry, '1', 'ORT_DISABLE_TELEMETRY must be set where onnxruntime is loaded')
  if (process.getuid?.() === 0) assert.notEqual(user, '0')
  assert.equal(signal, 'SIGSYS', 'a process that tries to reach the network is killed')
  assert.equal(wasReached, false)
  for (const name of readdirSync(dir)) assert.equal(readFileSync(join(dir, name)).length, 0)
})

test('onnxruntime is loaded in one place, which switches its telemetry off before', () => {
  const loading = findSources(
    ['packages/*/{src,test}/**/*.ts', '{acceptance,bench,scripts,soak}/**/*.ts'],
    /(from|import\() ?'onnxruntime-node'/,
  )
  assert.deepEqual(loading, ['packages/server/src/engines/nsfw/onnxruntime.ts'])
})

test('no source of the service imports sharp, which is required in one place to start faster', () => {
  assert.deepEqual(findSources(['packages/server/src/**/*.ts'], /^import (?!type).*'sharp'/m), [])
})

/** The sources that contain `pattern`. */
function findSources(globs: string[], pattern: RegExp): string[] {
  const root = fileURLToPath(new URL('../../../../', import.meta.url))
  return globSync(globs, { cwd: root }).filter((file) => pattern.test(readFileSync(join(root, file), 'utf8')))
}

async function runProbe(t: { after(work: () => void): void }) {
  const dir = mkdtempSync(join(tmpdir(), 'assay-probe-'))
  // All users may write here, so that the permissions of the directory are not what refuses.
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
  const confinement = chooseConfinement({ program: probe, modelDirs: [import.meta.dirname], maxDataMb: 2048 })
  const { command, args, env } = confinement.wrap()
  const options = { cwd: '/', env: { PATH: process.env.PATH, ...env } }
  const { stdout, signal } = await promisify(execFile)(command, addArguments(args, [`${port}`, dir]), options).then(
    ({ stdout }) => ({ stdout, signal: undefined }),
    (error: { stdout: string; signal: string }) => error,
  )
  const scanner: Record<string, string> = JSON.parse(stdout)
  return { scanner, signal, wasReached, dir }
}

/** Adds arguments of the program to those of its launcher. */
function addArguments(args: string[], added: string[]): string[] {
  const jail = JSON.parse(args.at(-1) ?? '')
  return args.with(-1, JSON.stringify({ ...jail, command: [...jail.command, ...added] }))
}

describe('cores for image processes', () => {
  test('one process is not pinned, and each other gets the core with the fewest processes', () => {
    const { take, release } = makeCores({ processes: 4, usable: [4, 5] })
    assert.deepEqual([take(), take(), take(), take()], [undefined, 4, 5, 4])
    release(5)
    assert.equal(take(), 5)
    release(4)
    release(4)
    assert.deepEqual([take(), take(), take()], [4, 4, 5])
    release(undefined)
    assert.deepEqual([take(), take()], [undefined, 4])
  })

  test('no process is pinned where there are more cores than processes, or cores are unknown', () => {
    for (const [processes, usable] of [
      [1, [0, 1]],
      [7, [0, 1, 2, 3, 4, 5, 6, 7]],
      [2, [0]],
      [2, []],
    ] as const) {
      const { take, release } = makeCores({ processes, usable: [...usable] })
      assert.equal(take(), undefined)
      release(undefined)
    }
  })

  test('the kernel’s list of cores is read', () => {
    assert.deepEqual(toCores('0-2,5,8-9'), [0, 1, 2, 5, 8, 9])
    assert.deepEqual(toCores('3'), [3])
    assert.deepEqual(toCores(''), [])
  })
})

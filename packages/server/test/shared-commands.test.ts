import assert from 'node:assert/strict'
import { execFile, fork } from 'node:child_process'
import { once } from 'node:events'
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, test } from 'node:test'
import { fileURLToPath } from 'node:url'
import { readRun, runShared } from '../../../acceptance/support/shared-commands.ts'
import { waitUntil } from '../../../acceptance/support/wait-until.ts'

const support = fileURLToPath(new URL('../../../acceptance/support/', import.meta.url))
const dir = mkdtempSync(join(tmpdir(), 'assay-shared-commands-'))
after(() => rmSync(dir, { recursive: true }))

function writeMain(name: string, text: string): string {
  const file = join(dir, `${name}.mjs`)
  writeFileSync(file, text)
  return file
}

const run = (mainFile: string, ...args: string[]) =>
  runShared(mainFile, { args, env: process.env }) ?? assert.fail('the process is busy')

const saying = (word: string) => `console.log('${word}', process.pid, process.argv[2]); process.exit(3)`

test('commands of a program share a process, and those of another one have another', async () => {
  const [first, second] = [writeMain('first', saying('first')), writeMain('second', saying('second'))]
  const runs = [await run(first, 'a'), await run(second, 'b'), await run(first, 'c')]
  const words = runs.map(({ out }) => out.trim().split(' '))
  assert.deepEqual(
    words.map(([word, , arg]) => [word, arg]),
    [
      ['first', 'a'],
      ['second', 'b'],
      ['first', 'c'],
    ],
  )
  assert.deepEqual(
    runs.map(({ code }) => code),
    [3, 3, 3],
  )
  const pids = words.map(([, pid]) => pid)
  assert.equal(pids[0], pids[2])
  assert.notEqual(pids[0], pids[1])
})

test('a command is over when its output has both marks', () => {
  assert.equal(readRun('<m>', 'out<m>', 'err<m>'), undefined, 'the exit code is on its way')
  assert.equal(readRun('<m>', 'out<m>1<m>', 'err'), undefined)
  assert.deepEqual(readRun('<m>', 'out<m>1<m>', 'err<m>'), { code: 1, out: 'out', err: 'err' })
})

test('a program that never exits by itself has the exit code that Node gives it alone', async () => {
  const programs = [
    `console.log('waits'); await new Promise(() => {})`,
    `console.log('fails'); throw new Error('not today')`,
    `console.log('ends'); process.exitCode = 4`,
  ]
  for (const [at, text] of programs.entries()) {
    const main = writeMain(`end-${at}`, text)
    const alone = await new Promise<unknown[]>((resolve) => {
      execFile(process.execPath, [main], (error, out, err) =>
        resolve([error?.code, out, /await|not today/.exec(err)?.[0]]),
      )
    })
    for (let time = 0; time < 2; time++) {
      const { code, out, err } = await run(main)
      assert.deepEqual([code, out, /await|not today/.exec(err)?.[0]], alone, text)
    }
  }
})

test('a command that runs when the test process is killed comes to its end', async () => {
  const done = join(dir, 'done')
  const main = writeMain(
    'slow',
    `import { writeFileSync } from 'node:fs'
    console.log('begun')
    while (process.connected) await new Promise((resolve) => setTimeout(resolve, 5))
    await new Promise((resolve) => setTimeout(resolve, 100))
    writeFileSync(process.argv[2], '')
    process.exit()`,
  )
  const child = fork(join(support, 'command-process.ts'), [main, '<m>'], {
    stdio: ['ignore', 'pipe', 'ignore', 'ipc'],
  })
  const ended = once(child, 'exit')
  assert(child.stdout)
  child.send({ args: [done], env: process.env })
  await once(child.stdout, 'data')
  child.disconnect()
  await ended
  assert.ok(existsSync(done))
})

test('a command that never ends ends with the test process', async () => {
  const pidFile = join(dir, 'pid')
  const endless = writeMain(
    'endless',
    `import { renameSync, writeFileSync } from 'node:fs'
    writeFileSync(process.argv[2] + '.part', String(process.pid))
    renameSync(process.argv[2] + '.part', process.argv[2])
    setInterval(() => {}, 1000)
    await new Promise(() => {})`,
  )
  const test = writeMain(
    'test',
    `import { existsSync } from 'node:fs'
    import { runShared } from '${support}shared-commands.ts'
    runShared('${endless}', { args: ['${pidFile}'], env: process.env })
    setInterval(() => existsSync('${pidFile}') && process.exit(), 5)`,
  )
  await new Promise((resolve) => execFile(process.execPath, [test], resolve))
  await waitUntil('the command to end', () => !existsSync(`/proc/${readFileSync(pidFile, 'utf8')}`))
})

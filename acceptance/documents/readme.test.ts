import assert from 'node:assert/strict'
import { type ChildProcess, execFile, execFileSync, spawn, spawnSync } from 'node:child_process'
import { chmodSync, cpSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'node:test'
import { promisify } from 'node:util'
import { maskVariables, readCodeBlocks } from '../support/code-blocks.ts'
import { getTaker } from '../support/document-runners.ts'
import { findProcesses } from '../support/processes.ts'
import { waitUntil } from '../support/wait-until.ts'

const repository = new URL('../../', import.meta.url).pathname
const nobody = 65534
const isRoot = process.getuid?.() === 0
/** The database of the run makes no difference here, and npm ci takes its time: once is enough. */
const alreadyDone = process.env.ASSAY_TEST_EXTERNAL !== undefined

/** More than twice what a busy machine of two cores took, most of it for npm ci. */
const timeout = 240_000

const hasCurl = spawnSync('curl', ['--version']).status === 0

const blocks = readCodeBlocks('README.md')
const takes = getTaker('README.md', import.meta.filename)
const [install, greeting, curl, answer, scan, scanned, image, classified, background, testing, operating] = blocks.map(
  ({ text }) => text,
)

test('the README tells the test command that CI runs', () => {
  assert.equal(testing, 'npm ci && npm test\n')
})

test('no command of the README is left out below', () => {
  const typed = [install, curl, scan, image, background, operating]
  assert.deepEqual(
    blocks.filter(takes).map(({ text }) => text),
    typed,
  )
})

test('the commands of the README do what it says, for the user who runs it', { skip: alreadyDone, timeout }, () =>
  follow(undefined),
)

test('the same for an ordinary user', { skip: alreadyDone || !isRoot, timeout }, () =>
  follow({ uid: nobody, gid: nobody }),
)

/** From a fresh copy in an empty directory, as a newcomer would: install, start, ask, operate, stop. */
async function follow(user: { uid: number; gid: number } | undefined) {
  const home = mkdtempSync(join(tmpdir(), 'assay-newcomer-'))
  const clone = join(home, 'assay')
  copyTree(clone)
  if (user !== undefined) execFileSync('chown', ['-R', `${user.uid}:${user.gid}`, home])
  chmodSync(home, 0o755)
  const port = 20_000 + (process.pid % 20_000)
  const env = { ...toNewcomersEnvironment(), HOME: home, ASSAY_PORT: String(port) }
  const options = { cwd: clone, env, ...user }
  // A process group of its own, as a terminal would give it, so that Ctrl-C can reach all of it.
  const started = spawn('sh', ['-c', install ?? ''], { ...options, detached: true, stdio: ['ignore', 'pipe', 'pipe'] })
  const said = collect(started)
  try {
    await waitUntil(
      'the service is ready',
      () => said.text().includes('/v1/me') || started.exitCode !== null,
      0.9 * timeout,
    )
    assert.equal(started.exitCode, null, said.complaints())
    assert.equal(maskVariables(said.text().slice(said.text().indexOf('Assay '))), maskVariables(greeting ?? ''))

    const key = /assay_[0-9A-Za-z]{38}/.exec(said.text())?.[0] ?? ''
    const toRun = (command = '') => command.replaceAll(/assay_[0-9A-Za-z]{38}/g, key).replaceAll(':8080', `:${port}`)
    requireSame(await runCurl(toRun(curl)), answer)

    if (hasCurl) {
      const found = await runIn(clone, toRun(scan))
      // Without ClamAV, for a user who cannot install it, the same test file goes by another name.
      const isDegraded = found.includes('"degraded"')
      const requireThreat = (result: string) =>
        isDegraded ? assert.match(result, /"status":"threat"/) : requireSame(result, scanned)
      requireThreat(found)
      requireSame(await runIn(clone, toRun(image)), classified)
      requireThreat(await runIn(clone, toRun(background)))
    }
    // The test image is known without the models, which were converted all the same.
    const readiness = await fetch(`http://127.0.0.1:${port}/readyz`)
    assert.match(await readiness.text(), /"NSFW image engine":"ok"/)

    const operated = (operating ?? '').replaceAll('assay -- doctor\n', 'assay -- plans list\n')
    const { stdout: listed } = await promisify(execFile)('sh', ['-ec', operated], options)
    assert.match(listed, /Example Ltd +standard +100000 of 100000 +50\/1m +active/)
  } finally {
    if (started.pid !== undefined && started.exitCode === null) process.kill(-started.pid, 'SIGINT')
    await said.ended
    await waitUntil('Ctrl-C has ended everything', () => findProcesses(clone).length === 0)
    rmSync(home, { recursive: true, force: true })
  }
}

/** The README breaks the lines of answers for people; everything else must be the same. */
const requireSame = (said: string, documented = '') =>
  assert.deepEqual(JSON.parse(maskVariables(said)), JSON.parse(maskVariables(documented)))

/** What a clone would hold, with the changes that are not committed yet. */
function copyTree(to: string) {
  const left = new Set(
    ['.git', 'node_modules', 'data', 'packages/server/models/built'].map((name) => join(repository, name)),
  )
  cpSync(repository, to, { recursive: true, filter: (path) => !left.has(path) && !path.includes('/node_modules/') })
}

/** What npm and this run added is taken away: the newcomer has only what the system has. */
function toNewcomersEnvironment(): NodeJS.ProcessEnv {
  const kept = Object.entries(process.env).filter(
    ([name]) => !/^(npm_|ASSAY_|NODE_TEST|NODE_OPTIONS|INIT_CWD)/i.test(name),
  )
  const path = (process.env.PATH ?? '').split(':').filter((dir) => !/node_modules|node-gyp/.test(dir))
  return { ...Object.fromEntries(kept), PATH: path.join(':') }
}

/** A fresh Debian need not have curl; the same request must do then. */
async function runCurl(command: string): Promise<string> {
  if (hasCurl) return runIn('/', command)
  const [, name = '', value = '', url = ''] = /^curl -H "([^:]+): ([^"]+)" (\S+)\n$/.exec(command) ?? []
  return (await fetch(url, { headers: { [name]: value } })).text()
}

const runIn = async (cwd: string, command: string) =>
  (await promisify(execFile)('sh', ['-ec', command], { cwd })).stdout

function collect(child: ChildProcess) {
  let text = ''
  child.stdout?.setEncoding('utf8').on('data', (part) => {
    text += part
  })
  let complaints = ''
  child.stderr?.setEncoding('utf8').on('data', (part) => {
    complaints += part
  })
  return {
    text: () => text,
    complaints: () => complaints,
    ended: new Promise((resolve) => child.once('exit', resolve)),
  }
}

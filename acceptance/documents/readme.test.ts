import assert from 'node:assert/strict'
import { type ChildProcess, execFile, execFileSync, spawn, spawnSync } from 'node:child_process'
import { chmodSync, cpSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'node:test'
import { promisify } from 'node:util'
import { maskVariables, readCodeBlocks } from '../support/code-blocks.ts'
import { findProcesses } from '../support/processes.ts'
import { waitUntil } from '../support/wait-until.ts'

const repository = new URL('../../', import.meta.url).pathname
const nobody = 65534
const isRoot = process.getuid?.() === 0
/** The database of the run makes no difference here, and npm ci takes its time: once is enough. */
const alreadyDone = process.env.ASSAY_TEST_EXTERNAL !== undefined

const hasCurl = spawnSync('curl', ['--version']).status === 0

const blocks = readCodeBlocks('README.md')
const [install, greeting, curl, answer, scan, scanned, testing, operating] = blocks.map(({ text }) => text)

test('the README tells the test command that CI runs', () => {
  assert.equal(testing, 'npm ci && npm test\n')
})

test('the commands of the README do what it says, for the user who runs it', { skip: alreadyDone }, () =>
  follow(undefined),
)

test('the same for an ordinary user', { skip: alreadyDone || !isRoot }, () => follow({ uid: nobody, gid: nobody }))

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
    await waitUntil('the service is ready', () => said.text().includes('/v1/me') || started.exitCode !== null, 110_000)
    assert.equal(started.exitCode, null, said.complaints())
    assert.equal(maskVariables(said.text().slice(said.text().indexOf('Assay '))), maskVariables(greeting ?? ''))

    const key = /assay_[0-9A-Za-z]{38}/.exec(said.text())?.[0] ?? ''
    const toRun = (command = '') => command.replace(/assay_[0-9A-Za-z]{38}/, key).replace(':8080', `:${port}`)
    // The README breaks the lines of the answer for people; everything else must be the same.
    assert.deepEqual(JSON.parse(maskVariables(await runCurl(toRun(curl)))), JSON.parse(maskVariables(answer ?? '')))

    if (hasCurl) {
      const result = maskVariables(await runIn(home, toRun(scan)))
      // Without ClamAV, for a user who cannot install it, the same test file goes by another name.
      if (!result.includes('"degraded"')) assert.deepEqual(JSON.parse(result), JSON.parse(maskVariables(scanned ?? '')))
      else assert.match(result, /"status":"threat"/)
    }

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

/** What a clone would hold, with the changes that are not committed yet. */
function copyTree(to: string) {
  const left = new Set(['.git', 'node_modules', 'data'].map((name) => join(repository, name)))
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

import assert from 'node:assert/strict'
import { execFile, spawnSync } from 'node:child_process'
import { mkdirSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { promisify } from 'node:util'
import { maskVariables, readCodeBlocks } from '../support/code-blocks.ts'
import { getTaker } from '../support/document-runners.ts'
import { openNewcomer } from '../support/newcomer.ts'
import { waitUntil } from '../support/wait-until.ts'

/** More than twice what a busy machine with two cores took. */
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

test('the commands of the README do what it says in a fresh copy, for an ordinary user', { timeout }, async (t) => {
  const { clone, port, options, start, close } = await openNewcomer()
  t.after(close)
  // Tools keep caches in such a directory, where Node then looks for packages before it looks in the installation.
  mkdirSync(join(clone, 'packages/server/node_modules/.cache'), { recursive: true })
  const { child, output } = start(withDryRun(install ?? ''))
  const isReady = () => output.stdout.includes('Press Ctrl-C') || child.exitCode !== null
  await waitUntil('the service to be ready', isReady, 0.9 * timeout)
  assert.equal(child.exitCode, null, output.stderr)
  // What an ordinary user lacks, and what to do about it, depends on the machine.
  const maskGreeting = (text: string) => maskVariables(text).replace(/^ {2}Degraded {2,}ClamAV.*\.$/m, '  Degraded ...')
  assert.equal(maskGreeting(output.stdout.slice(output.stdout.indexOf('Assay '))), maskGreeting(greeting ?? ''))

  const key = /assay_[0-9A-Za-z]{38}/.exec(output.stdout)?.[0] ?? ''
  const toRun = (command = '') => command.replaceAll(/assay_[0-9A-Za-z]{38}/g, key).replaceAll(':8080', `:${port}`)
  requireSame(await runCurl(toRun(curl)), answer)

  if (hasCurl) {
    const found = await runIn(clone, toRun(scan))
    // Without ClamAV, which an ordinary user cannot install, another engine finds the same test file.
    const isDegraded = found.includes('"degraded"')
    const requireThreat = (result: string) =>
      isDegraded ? assert.match(result, /"status":"threat"/) : requireSame(result, scanned)
    requireThreat(found)
    requireSame(await runIn(clone, toRun(image)), classified)
    requireThreat(await runIn(clone, toRun(background)))
  }
  // The test image is known without the models, so that only readiness tells whether they were converted.
  const readiness = await fetch(`http://127.0.0.1:${port}/readyz`)
  assert.match(await readiness.text(), /"NSFW image engine":"ok"/)

  const operated = withoutNpm((operating ?? '').replaceAll('assay -- doctor\n', 'assay -- plans list\n'))
  const { stdout: listed } = await promisify(execFile)('sh', ['-ec', operated], options)
  assert.match(listed, /Example Ltd +standard +100000 of 100000 +50\/1m +active/)
})

/**
 * npm checks the lockfile and reports what it would install; the packages are there already. CI types `npm ci` before
 * the tests, and `npm run check:fresh-machine` on a new machine.
 */
function withDryRun(command: string): string {
  assert.match(command, /^npm ci && /)
  return command.replace('npm ci', 'npm ci --dry-run')
}

/** Runs all commands but the first without npm, which takes as much processor time as the operator's program. */
function withoutNpm(commands: string): string {
  const [first = '', ...others] = commands.split(/^(?=npm run assay -- )/m)
  assert.ok(others.length > 0)
  return first + others.map((command) => command.replace('npm run assay --', 'packaging/assay')).join('')
}

/** The README breaks the lines of answers for people; everything else must be the same. */
const requireSame = (said: string, documented = '') =>
  assert.deepEqual(JSON.parse(maskVariables(said)), JSON.parse(maskVariables(documented)))

/** A fresh Debian need not have curl: then `fetch` sends the same request. */
async function runCurl(command: string): Promise<string> {
  if (hasCurl) return runIn('/', command)
  const [, name = '', value = '', url = ''] = /^curl -H "([^:]+): ([^"]+)" (\S+)\n$/.exec(command) ?? []
  return (await fetch(url, { headers: { [name]: value } })).text()
}

const runIn = async (cwd: string, command: string) =>
  (await promisify(execFile)('sh', ['-ec', command], { cwd })).stdout

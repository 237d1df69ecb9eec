import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { parseArgs } from 'node:util'
import { readCodeBlocks, toFileName } from '../acceptance/support/code-blocks.ts'
import { findFreePort } from '../acceptance/support/free-port.ts'
import { type DebianRoot, makeDebianRoot, openDebianRoot } from './debian-root.ts'
import { exitUnlessPossible } from './required-programs.ts'

/**
 * `npm run check:fresh-machine` tests that `npm ci && npm start` is enough on a new machine. Makes two Debian 12,
 * each with Node, npm, ca-certificates and curl, and follows the README there: as root, where the service installs
 * ClamAV, and as an ordinary user, whom it tells what to type. Needs root, debootstrap, and access to Debian and npm.
 * `-- root` and `-- user` run one of the two; `--from DIR` uses a directory that debootstrap made before.
 */
const { values: options, positionals } = parseArgs({ allowPositionals: true, options: { from: { type: 'string' } } })
exitUnlessPossible({ programs: ['debootstrap', 'git', 'nsenter', 'unshare'], asRoot: true })
const repository = fileURLToPath(new URL('../', import.meta.url))
const startTimeoutMs = 15 * 60_000
const missing = /ClamAV is not installed, and only root may install it\. Type: sudo (apt-get install [^;]*); then start/

const [install, , , , scan, , image] = readCodeBlocks('README.md').map(({ text }) => text)
const times: [step: string, seconds: number][] = []
/** The API key, which the service prints only at its first start on a machine. */
let lastKey = ''
const work = mkdtempSync(join(tmpdir(), 'fresh-machine-'))
process.env.ASSAY_PORT ??= String(await findFreePort())
try {
  for (const [name, scenario] of Object.entries({ root: asRoot, user: asOrdinaryUser })) {
    if (positionals.length > 0 && !positionals.includes(name)) continue
    await time(`${name}: a new Debian`, () =>
      makeDebianRoot(join(work, name), ['ca-certificates', 'curl'], options.from),
    )
    await withMachine(name, scenario)
  }
  process.stdout.write(`\n${times.map(([step, s]) => `${step.padEnd(56)} ${s.toFixed(1).padStart(6)} s`).join('\n')}\n`)
} finally {
  rmSync(work, { recursive: true, force: true })
}

async function asRoot(machine: DebianRoot, clone: (home: string) => void) {
  clone('root')
  await time('root: npm ci', () => machine.run('root', 'cd assay && npm ci'))
  const first = await time('root: npm start until ready, ClamAV installed meanwhile', () => start(machine, 'root'))
  assert.match(first.log(), /"msg":"ClamAV is installed"/)
  await expectVerdicts(machine, 'root', first, 'ready')
  await time('root: Ctrl-C', first.interrupt)
  const second = await time('root: npm start, the second time', () => start(machine, 'root'))
  await time('root: Ctrl-C, the second time', second.interrupt)
  machine.run('root', 'rm -rf assay/data assay/packages/server/models/built')
  lastKey = ''
  await time('root: the whole quickstart, packages there', async () => {
    const running = await start(machine, 'root')
    followQuickstart(machine, 'root', running)
    return running
  }).then((running) => running.interrupt())
}

/** Runs the commands of docs/quickstart.md after the start as one script, which must print everything it shows. */
function followQuickstart(machine: DebianRoot, user: string, { url, apiKey }: Running) {
  const blocks = readCodeBlocks('docs/quickstart.md').filter(({ text }) => text !== install)
  const script = blocks.map((block) => {
    const name = toFileName(block)
    if (name !== undefined) return `cat > ${name} <<'END'\n${block.text}END\n`
    return block.language === 'sh' ? block.text : ''
  })
  const commands = script
    .join('')
    .replaceAll(/assay_\w{38}/g, apiKey)
    .replaceAll('http://127.0.0.1:8080', url)
  const output = machine.run(user, `cd assay && set -e\n${commands}`)
  for (const { language, text } of blocks) if (language === 'text') assert(output.includes(text.trim()), output)
}

async function asOrdinaryUser(machine: DebianRoot, clone: (home: string) => void) {
  machine.run('root', 'useradd --create-home newcomer')
  clone('home/newcomer')
  machine.run('root', 'chown -R newcomer:newcomer /home/newcomer')
  await time('user: npm ci', () => machine.run('newcomer', 'cd assay && npm ci'))
  const withoutClamAv = await time('user: npm start until ready, without ClamAV', () => start(machine, 'newcomer'))
  const [, advice] = missing.exec(withoutClamAv.log()) ?? []
  assert(advice !== undefined, `The log does not name the command to type:\n${withoutClamAv.log()}`)
  await expectVerdicts(machine, 'newcomer', withoutClamAv, 'degraded')
  await time('user: Ctrl-C', withoutClamAv.interrupt)
  // Root types the command that the service printed.
  await time(`user: ${advice}`, () =>
    machine.run('root', `apt-get update -q && DEBIAN_FRONTEND=noninteractive ${advice} -y -q`),
  )
  const withClamAv = await time('user: npm start, with ClamAV', () => start(machine, 'newcomer'))
  await expectVerdicts(machine, 'newcomer', withClamAv, 'ready')
  await time('user: Ctrl-C, with ClamAV', withClamAv.interrupt)
}

type Running = { url: string; apiKey: string; log(): string; interrupt(): Promise<void> }

/** Returns when the service has printed its banner. */
function start(machine: DebianRoot, user: string): Promise<Running> {
  // Whether the machine can download ClamAV's official databases must not decide on the result.
  const settings = 'ASSAY_SIGNATURE_HOURS=0 ASSAY_SIGNATURE_MAX_AGE=off'
  const child = machine.start(user, `cd assay && exec env ${settings} npm start`)
  let output = ''
  for (const stream of [child.stdout, child.stderr]) {
    stream?.setEncoding('utf8').on('data', (text: string) => {
      output += text
    })
  }
  // `close` comes when the last process of the group ends; `exit` would come when the first one does.
  const ended = new Promise<number | null>((resolve) => child.once('close', resolve))
  return new Promise((resolve, reject) => {
    const giveUp = setTimeout(() => reject(new Error(`Not ready in time:\n${output}`)), startTimeoutMs)
    void ended.then((code) => reject(new Error(`The service ended with ${code}:\n${output}`)))
    child.stdout?.on('data', () => {
      const [, url] = /is ready at (http:\S+)\n.*Press Ctrl-C to stop\.\n/s.exec(output) ?? []
      const [, key] = /API key {2,}(assay_\w+).*\n {2}curl /s.exec(output) ?? []
      if (url === undefined || (lastKey === '' && key === undefined)) return
      lastKey = key ?? lastKey
      clearTimeout(giveUp)
      resolve({ url, apiKey: lastKey, log: () => output, interrupt })
    })
  })

  /** Sends a signal to every process of the group, as a terminal does. */
  async function interrupt() {
    process.kill(-(child.pid ?? 0), 'SIGINT')
    await ended
    assert.match(output, /"msg":"stopped"/)
  }
}

/** Runs the commands of the README with the key and the address that the service printed. */
async function expectVerdicts(machine: DebianRoot, user: string, { url, apiKey }: Running, state: string) {
  const type = (block = '') => {
    const commands = block.replaceAll(/assay_\w{38}/g, apiKey).replaceAll('http://127.0.0.1:8080', url)
    return machine.run(user, `cd assay && ${commands.replaceAll('curl ', 'curl -sS ')}`)
  }
  const readiness = JSON.parse(machine.run(user, `curl -sS ${url}/readyz`))
  assert.equal(readiness.status, state, JSON.stringify(readiness))
  const found = JSON.parse(await time(`${user}: scan of EICAR (${state})`, () => type(scan)))
  assert.deepEqual([found.status, found.metadata.degraded !== undefined], ['threat', state === 'degraded'])
  const picture = JSON.parse(await time(`${user}: scan of a picture (${state})`, () => type(image)))
  assert.deepEqual([picture.status, picture.signals], ['threat', ['Classification:pornography']])
}

async function withMachine(
  name: string,
  scenario: (machine: DebianRoot, clone: (home: string) => void) => Promise<void>,
) {
  const dir = join(work, name)
  lastKey = ''
  const machine = await openDebianRoot(dir)
  const clone = (home: string) => {
    execFileSync('git', ['clone', '-q', '--depth=1', `file://${repository}`, join(dir, home, 'assay')])
  }
  try {
    assert.equal(install, 'npm ci && npm start\n')
    await scenario(machine, clone)
  } finally {
    machine.close()
  }
}

async function time<T>(step: string, work: () => T | Promise<T>): Promise<T> {
  const startedAt = performance.now()
  const result = await work()
  const seconds = (performance.now() - startedAt) / 1000
  times.push([step, seconds])
  process.stdout.write(`${step}: ${seconds.toFixed(1)} s\n`)
  return result
}

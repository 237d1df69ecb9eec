import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import { mkdtempSync, rmSync } from 'node:fs'
import { createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { parseArgs } from 'node:util'
import { readCodeBlocks, toFileName } from '../acceptance/support/code-blocks.ts'
import { type DebianRoot, makeDebianRoot, openDebianRoot } from './debian-root.ts'

/**
 * `npm run check:fresh-machine`: whether `npm ci && npm start` is really all it takes. Makes two Debian 12 from nothing,
 * each with Node, npm, ca-certificates and curl, and does there what the README says: as root, where ClamAV is installed
 * by itself, and as an ordinary user, who is told what to type. Needs root, debootstrap, and a way to Debian and npm.
 * `-- root` and `-- user` do one of the two; `--from DIR` takes a root that debootstrap made with those packages before.
 */
const { values: options, positionals } = parseArgs({ allowPositionals: true, options: { from: { type: 'string' } } })
const repository = new URL('../', import.meta.url).pathname
const startTimeoutMs = 15 * 60_000
const missing = /ClamAV is not installed, and only root may install it\. Type: sudo (apt-get install [^;]*); then start/

const [install, , , , scan, , image] = readCodeBlocks('README.md').map(({ text }) => text)
const times: [step: string, seconds: number][] = []
/** Shown at the first start of a machine alone. */
let lastKey = ''
const work = mkdtempSync(join(tmpdir(), 'fresh-machine-'))
process.env.ASSAY_PORT ??= String(await findPort())
try {
  for (const [name, story] of Object.entries({ root: asRoot, user: asOrdinaryUser })) {
    if (positionals.length > 0 && !positionals.includes(name)) continue
    await time(`${name}: a new Debian`, () =>
      makeDebianRoot(join(work, name), ['ca-certificates', 'curl'], options.from),
    )
    await withMachine(name, story)
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

/** All that docs/quickstart.md has after the start, as one script; all that it shows must come. */
function followQuickstart(machine: DebianRoot, user: string, { url, apiKey }: Running) {
  const blocks = readCodeBlocks('docs/quickstart.md').filter(({ text }) => text !== install)
  const script = blocks.map((block) => {
    const name = toFileName(block)
    if (name !== undefined) return `cat > ${name} <<'END'\n${block.text}END\n`
    return block.language === 'sh' ? block.text : ''
  })
  const here = script
    .join('')
    .replaceAll(/assay_\w{38}/g, apiKey)
    .replaceAll('http://127.0.0.1:8080', url)
  const said = machine.run(user, `cd assay && set -e\n${here}`)
  for (const { language, text } of blocks) if (language === 'text') assert(said.includes(text.trim()), said)
}

async function asOrdinaryUser(machine: DebianRoot, clone: (home: string) => void) {
  machine.run('root', 'useradd --create-home newcomer')
  clone('home/newcomer')
  machine.run('root', 'chown -R newcomer:newcomer /home/newcomer')
  await time('user: npm ci', () => machine.run('newcomer', 'cd assay && npm ci'))
  const without = await time('user: npm start until ready, without ClamAV', () => start(machine, 'newcomer'))
  const [, advice] = missing.exec(without.log()) ?? []
  assert(advice !== undefined, `It does not say what to type:\n${without.log()}`)
  await expectVerdicts(machine, 'newcomer', without, 'degraded')
  await time('user: Ctrl-C', without.interrupt)
  // What it said, typed as it stands, by somebody who may.
  await time(`user: ${advice}`, () =>
    machine.run('root', `apt-get update -q && DEBIAN_FRONTEND=noninteractive ${advice} -y -q`),
  )
  const healed = await time('user: npm start, with ClamAV', () => start(machine, 'newcomer'))
  await expectVerdicts(machine, 'newcomer', healed, 'ready')
  await time('user: Ctrl-C, with ClamAV', healed.interrupt)
}

type Running = { url: string; apiKey: string; log(): string; interrupt(): Promise<void> }

/** Returns when the banner is there. */
function start(machine: DebianRoot, user: string): Promise<Running> {
  const child = machine.start(user, 'cd assay && exec npm start')
  let said = ''
  for (const stream of [child.stdout, child.stderr]) {
    stream?.setEncoding('utf8').on('data', (text: string) => {
      said += text
    })
  }
  // Not `exit`: the first of the group ends before those it started, and this comes when the last has nothing more to say.
  const ended = new Promise<number | null>((resolve) => child.once('close', resolve))
  return new Promise((resolve, reject) => {
    const giveUp = setTimeout(() => reject(new Error(`Not ready in time:\n${said}`)), startTimeoutMs)
    void ended.then((code) => reject(new Error(`It ended with ${code}:\n${said}`)))
    child.stdout?.on('data', () => {
      const [, url] = /is ready at (http:\S+) .*Ctrl-C stops it\.\n/.exec(said) ?? []
      const [, key] = /API key {2,}(assay_\w+).*\n {2}curl /s.exec(said) ?? []
      if (url === undefined || (lastKey === '' && key === undefined)) return
      lastKey = key ?? lastKey
      clearTimeout(giveUp)
      resolve({ url, apiKey: lastKey, log: () => said, interrupt })
    })
  })

  /** As a terminal does it: to everybody in the group. */
  async function interrupt() {
    process.kill(-(child.pid ?? 0), 'SIGINT')
    await ended
    assert.match(said, /"msg":"stopped"/)
  }
}

/** The README's own commands, with the key and the address that were printed. */
async function expectVerdicts(machine: DebianRoot, user: string, { url, apiKey }: Running, state: string) {
  const type = (block = '') => {
    const here = block.replaceAll(/assay_\w{38}/g, apiKey).replaceAll('http://127.0.0.1:8080', url)
    return machine.run(user, `cd assay && ${here.replaceAll('curl ', 'curl -sS ')}`)
  }
  const readiness = JSON.parse(machine.run(user, `curl -sS ${url}/readyz`))
  assert.equal(readiness.status, state, JSON.stringify(readiness))
  const found = JSON.parse(await time(`${user}: scan of EICAR (${state})`, () => type(scan)))
  assert.deepEqual([found.status, found.metadata.degraded !== undefined], ['threat', state === 'degraded'])
  const picture = JSON.parse(await time(`${user}: scan of a picture (${state})`, () => type(image)))
  assert.deepEqual([picture.status, picture.signals], ['threat', ['Classification:pornography']])
}

async function withMachine(name: string, story: (machine: DebianRoot, clone: (home: string) => void) => Promise<void>) {
  const dir = join(work, name)
  lastKey = ''
  const machine = await openDebianRoot(dir)
  const clone = (home: string) => {
    execFileSync('git', ['clone', '-q', '--depth=1', `file://${repository}`, join(dir, home, 'assay')])
  }
  try {
    assert.equal(install, 'npm ci && npm start\n')
    await story(machine, clone)
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

/** The one of the README may be taken here. */
function findPort(): Promise<number> {
  return new Promise((resolve) => {
    const server = createServer().listen(0, '127.0.0.1', () => {
      const address = server.address()
      server.close(() => resolve(typeof address === 'object' && address !== null ? address.port : 0))
    })
  })
}

/**
 * Started by hostile.test.ts, as root or as an ordinary user: puts a hostile program in the place of each parser, with
 * exactly the parser's launch, and prints the results of all attempts as JSON.
 */
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { chmodSync, closeSync, mkdirSync, mkdtempSync, openSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { text } from 'node:stream/consumers'
import { fileURLToPath } from 'node:url'
import { prepareClamdDir, removeClamdDir } from '../../src/engines/clamav/clamd-config.ts'
import { toFreshclamLaunch } from '../../src/engines/clamav/freshclam.ts'
import { findProgram } from '../../src/engines/clamav/installation.ts'
import { makeSandboxChooser } from '../../src/engines/clamav/open-own-clamd.ts'
import { toClamdLaunch } from '../../src/engines/clamav/supervisor.ts'
import { openOwnDir, prepareCommand } from '../../src/engines/external/command.ts'
import { encodeFilter } from '../../src/engines/jail/filter.ts'
import { launcherDirs } from '../../src/engines/jail/jail.ts'
import { chooseConfinement } from '../../src/engines/nsfw/confinement.ts'
import { toConversionLaunch } from '../../src/engines/nsfw/models/open-models.ts'
import { toUnpackerLaunch } from '../../src/engines/unpack/open-unpacker.ts'
import { toYaraLaunch } from '../../src/engines/yara/load-rules.ts'
import { chooseUnprivileged } from '../../src/runtime/process.ts'
import { hostileNumbers } from './hostile-numbers.ts'

/** The argument of this program, as JSON. */
export type HostileOptions = {
  /** The fatal call of the first parser; the others make the following ones. Without it, none is made. */
  firstFatal?: number
  /** The version of Landlock to use, as if the kernel had no newer one. */
  landlock?: number
  /** Attempts to start 10,000 threads, of which the limit is the same in every test. */
  startsThreads?: boolean
}

type Launch = { command: string; args: string[]; env?: Record<string, string> }

const killResult = encodeFilter([[0x06, 0, 0, 0x80000000]]).filter
const rejected = encodeFilter([[0x06, 0, 0, 0x00050000 | 129]]).filter
const program = fileURLToPath(new URL('hostile-program.cjs', import.meta.url))
const child = (name: string) => fileURLToPath(new URL(`../../src/engines/${name}/child/main.ts`, import.meta.url))

const dir = mkdtempSync(join(tmpdir(), 'assay-hostile-'))
const dataDir = join(dir, 'data')
mkdirSync(dataDir)
// Every user may write here, so that it is not the mode of the directory that refuses.
for (const path of [dir, dataDir]) chmodSync(path, 0o777)
writeFileSync(join(dataDir, 'master.key'), 'secret', { mode: 0o600 })
writeFileSync(join(dataDir, 'other-content'), 'content', { mode: 0o666 })
chmodSync(join(dataDir, 'other-content'), 0o666)
let connections = 0
const tcp = createServer(() => connections++).listen(0, '127.0.0.1')
const socket = join(dataDir, 'database.sock')
const unix = createServer(() => connections++).listen(socket)
const abstractName = `\0${dir}`
const abstract = createServer(() => connections++).listen(abstractName)
await Promise.all([once(tcp, 'listening'), once(unix, 'listening'), once(abstract, 'listening')])
chmodSync(socket, 0o777)
const address = tcp.address()
const port = typeof address === 'object' ? address?.port : undefined

const clamd = findProgram('clamd')
const freshclam = findProgram('freshclam')
const launches: Record<string, () => Launch> = {
  unpacker: () => toUnpackerLaunch(child('unpack')),
  yara: () => toYaraLaunch(child('yara'), undefined),
  images: () => chooseConfinement({ program: child('nsfw'), modelDirs: [], maxDataMb: 2048 }).wrap(),
}
launches.modelConversion = () => toConversionLaunch(child('nsfw/models'), [])
launches.command = () => {
  const limits = { memoryMb: 2048, scratchMb: 64, processorSeconds: 60 }
  const codes = { cleanCodes: [0], threatCodes: [1], threatPattern: undefined }
  const settings = { program: process.execPath, args: [], reads: [], ...limits, ...codes }
  return prepareCommand(settings, {
    name: 'hostile',
    dir: openOwnDir(join(dataDir, 'engines')).path,
    acceptsDisk: true,
  })(undefined)
}
if (clamd !== undefined) {
  launches.clamd = () => {
    const options = { binary: clamd, dataDir, scratchMegabytes: 64, acceptsDisk: true }
    const { user, chooseForDir } = makeSandboxChooser(options)
    const place = prepareClamdDir(dataDir, 'clamav', user)
    const sandbox = chooseForDir(place.dir)
    sandbox.wipe()
    return toClamdLaunch({ place, binary: clamd, sandbox })
  }
}
if (freshclam !== undefined) {
  launches.freshclam = () => {
    const officialDir = join(dataDir, 'official')
    const user = chooseUnprivileged('engine', ['clamav', 'nobody'], [dataDir, ...launcherDirs])
    return toFreshclamLaunch({ binary: freshclam, officialDir, user }, 9, [])
  }
}
const { firstFatal, landlock, startsThreads = false }: HostileOptions = JSON.parse(process.argv[2] ?? '{}')
/** Calls that kill a parser, one for each parser. */
const fatalAttempts = [
  ['ptrace', 0x4206, process.pid],
  ['mount', 0, 0, 0],
  ['bpf', 5],
  ['keyctl', 0, -3, 1],
  ['process_vm_readv', process.pid],
  ['unshare', 0x10000000],
  ['kill', process.pid],
  ['kill', 0],
  ['tgkill', process.pid, process.pid],
  ['socket', 17, 3],
  ['socket', 2, 3, 255],
  ['shmget', 0x5432, 4096],
  ['clone', 0x10000000 | 17],
  ['perf_event_open'],
  ['open_by_handle_at'],
  ['userfaultfd', 1],
  ['chroot'],
  ['prlimit64', process.pid, 7],
].map(([name = '', ...args]) => [hostileNumbers[name] ?? 0, ...args.map(Number)])

try {
  const results: Record<string, object> = {}
  const signals: Record<string, string | null> = {}
  for (const [index, [name, toLaunch]] of Object.entries(launches).entries()) {
    const launch = toLaunch()
    results[name] = JSON.parse((await runHostile(launch)).stdout)
    if (firstFatal === undefined) continue
    const fatal = fatalAttempts[(firstFatal + index) % fatalAttempts.length] ?? []
    const { stdout, signal } = await runHostile(toLaunch(), fatal)
    signals[`${name}: ${fatal}`] = stdout || signal
  }
  const isEmpty = statSync(join(dataDir, 'other-content')).size === 0
  const mode = statSync(join(dataDir, 'master.key')).mode & 0o777
  console.log(JSON.stringify({ results, signals, connections, isEmpty, mode }))
} finally {
  for (const server of [tcp, unix, abstract]) server.close()
  removeClamdDir(join(dataDir, 'clamav'))
  removeClamdDir(join(dataDir, 'engines', 'hostile'))
  rmSync(dir, { recursive: true })
}

/**
 * Replaces the program of a launch and gives it the right to read itself. All else stays as it is for the parser, but
 * calls for which the kernel would kill the process get an error of their own, so that one process can attempt them all.
 * With a fatal call, nothing is changed, and the program makes that call only.
 */
async function runHostile({ command, args, env }: Launch, fatal?: number[]) {
  const at = args.findIndex((arg) => arg.startsWith('{'))
  const jail = JSON.parse(args[at] ?? '{}')
  const task = {
    koffi: jail.koffi,
    key: join(dataDir, 'master.key'),
    elsewhere: dataDir,
    service: process.pid,
    port,
    socket,
    abstract: abstractName,
    numbers: hostileNumbers,
    fatal,
    startsThreads,
  }
  const node = process.execPath
  const hostile = {
    ...jail,
    landlock: Math.min(jail.landlock, landlock ?? jail.landlock),
    // The hostile program may lie in a directory that is closed to others; this only gives it more.
    keepsCapability: true,
    command: [node, '--no-warnings', program, JSON.stringify(task)],
    // The kernel counts the threads of a user over all programs. The limit of a parser would leave none to the parsers of
    // other tests.
    freeThreads: 256,
    filter: fatal === undefined ? withoutKill(jail.filter) : jail.filter,
    paths: [...jail.paths, [node, 0b101], [program, 0b100], [jail.koffi, 0b100]],
  }
  // A service that forgot to close its files on exec.
  const leaked = openSync(join(dataDir, 'master.key'), 'r')
  const [first = '', ...rest] = replaceJail([command, ...args], hostile)
  const started = spawn(first, rest, {
    cwd: '/',
    env: { PATH: process.env.PATH, ...env },
    stdio: ['ignore', 'pipe', 'pipe', 'pipe', leaked, ...Array(30).fill('ignore'), leaked],
  })
  closeSync(leaked)
  const closed = once(started, 'close')
  const [stdout, stderr] = await Promise.all([started.stdout, started.stderr].map((stream) => text(stream ?? [])))
  await closed
  if (!stdout && fatal === undefined) throw new Error(`The hostile program did not report: ${stderr}`)
  return { stdout: stdout ?? '', signal: started.signalCode }
}

/** Replaces the result that kills by EKEYREJECTED, which the filter returns nowhere else. */
function withoutKill(filter: string): string {
  return filter.replaceAll(/.{16}/g, (one) => (one === killResult ? rejected : one))
}

/** The words of a launch with another description of its jail. */
function replaceJail(words: string[], jail: object): string[] {
  return words.map((word) => (word.startsWith('{') ? JSON.stringify(jail) : word))
}

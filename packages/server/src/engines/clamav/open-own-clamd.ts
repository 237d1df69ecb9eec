import { mkdirSync } from 'node:fs'
import { basename, dirname, join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import type { EngineState, ScanEngine } from '../../domain/ports/engines.ts'
import { OperatorMistake } from '../../domain/problem.ts'
import { newClosers } from '../../runtime/closers.ts'
import { removeOutsideDir } from '../../runtime/files.ts'
import type { Logger } from '../../runtime/logger.ts'
import type { ServerAddress } from '../../runtime/node-http.ts'
import { chooseUnprivileged } from '../../runtime/process.ts'
import { watchDirectories } from '../../runtime/watch-files.ts'
import { launcherDirs } from '../jail/jail.ts'
import type { OnEscape } from '../jail/policy.ts'
import { chooseSandbox, type Sandbox, scratchName } from '../jail/sandbox.ts'
import { makeClamAvEngine, makeScratchBudget } from './clamav-engine.ts'
import { prepareClamdDir, toClamdConfig, toSocket } from './clamd-config.ts'
import { type ClamdClient, makeClamdClient } from './client.ts'
import { isAnswering } from './connection.ts'
import { openUpdater, type Updater } from './freshclam.ts'
import { readVersion } from './installation.ts'
import type { SignatureDirs } from './signature-files.ts'
import { makeSignatureLibrary, makeTrial, type SignatureLibrary } from './signature-library.ts'
import { type RunningClamd, startClamd, superviseClamd } from './supervisor.ts'

export type OwnClamdOptions = {
  binary: string
  dataDir: string
  dirs: SignatureDirs
  threads: number
  unpackedBytes?: number | undefined
  scratchMegabytes: number
  acceptsDisk: boolean
  updates: { binary: string; everyHours: number; mirror: string; urls: string[] } | undefined
  log: Logger
  onEscape?: OnEscape | undefined
}

/** ClamAV as the rest of the service sees it. */
export type ClamAv = {
  engine: ScanEngine
  /** The process of clamd, while Assay runs one. */
  findPid?(): number | undefined
  /** A sentence about what is wrong with ClamAV, or undefined. */
  findFault(): string | undefined
  /** Advice for the operator about official databases that are missing or old, as the end of a sentence. */
  findRemedy(): string
  /** Updates of the signatures; undefined where Assay does not update them. */
  updates?: Pick<Updater, 'runNow' | 'findLast'> | undefined
  /** Signature files that cannot be loaded. */
  listRefused?(): { path: string; reason: string }[]
  close(): Promise<void>
}

const clamdUsers = ['clamav', 'node', 'nobody']
const reloadTimeoutMs = 180_000
const pollMs = 10_000
const maxPings = 30
const pingTimeoutMs = 2000

/** Runs a clamd below the data directory, in a sandbox, supervised, and reloads it when signatures change. */
export async function openOwnClamd(options: OwnClamdOptions): Promise<ClamAv> {
  const { binary, dataDir, dirs, threads, unpackedBytes, log, onEscape } = options
  const closers = newClosers()
  mkdirSync(dirs.own, { recursive: true })
  mkdirSync(dirs.official, { recursive: true })
  mkdirSync(dirs.shared, { recursive: true })
  const { user, chooseForDir } = makeSandboxChooser(options)
  const place = prepareClamdDir(dataDir, 'clamav', user)
  const { dir, socket, databaseDir } = place
  await requireNoOtherClamd(socket)
  const sandbox = chooseForDir(dir)
  warnAboutSandbox(sandbox, options)
  const trial = makeTrial({ binary, dataDir, user, chooseSandbox: chooseForDir, onEscape })
  const library = makeSignatureLibrary({ dirs, databaseDir, trial, log })
  const config = toClamdConfig({ place, scratchDir: sandbox.scratchDir, threads, unpackedBytes })
  const loaded = makeLoadedState(library, readVersion(binary))
  const launch = () => startClamd({ binary, place, config, sandbox, onEscape })
  const supervisor = superviseClamd({
    socket,
    log,
    async start() {
      await library.placeFiles()
      const clamd = await launch().catch(async (error) => {
        if (!(await library.tryAllFiles())) throw error
        await library.placeFiles()
        return launch()
      })
      await loaded.note()
      return clamd
    },
  })
  // A directory in memory outside of the data directory; the next start makes another.
  closers.add(async () => removeOutsideDir(join(dir, scratchName)))
  closers.add(supervisor.close)
  const findPid = () => supervisor.findRunning()?.pid
  const client = makeClamdClient({ address: { path: socket }, findPid })
  closers.add(client.close)

  const refresh = makeRefresh({
    library,
    client,
    findRunning: supervisor.findRunning,
    async onReloaded() {
      await loaded.note()
      log.info({ signatures: loaded.findState().signatures }, 'new signatures are in use')
    },
    log,
  })
  const watcher = watchDirectories({ dirs: [dirs.own, dirs.official, dirs.shared], pollMs, onChange: refresh })
  closers.add(watcher.close)
  const updater =
    options.updates &&
    openUpdater({ ...options.updates, officialDir: dirs.official, user, onRun: refresh, log, onEscape })
  if (updater !== undefined) closers.add(updater.close)
  // When the first start fails, the supervisor retries; meanwhile scans are rejected and /readyz reports the reason.
  await supervisor.firstTry
  return {
    engine: makeClamAvEngine({
      client,
      findState: loaded.findState,
      marksContainers: () => true,
      scratch: makeScratchBudget({ megabytes: sandbox.megabytes }),
      onRetry: (error) => log.warn({ reason: error.message }, 'ClamAV did not answer; the scan is repeated once'),
    }),
    findPid,
    updates: updater,
    findRemedy: () => toRemedy(updater),
    listRefused: library.listRefused,
    findFault() {
      if (supervisor.findRunning() === undefined) return 'ClamAV does not run; the log says why. Assay starts it again.'
      const [first] = library.listRefused()
      return first && `The signature file ${basename(first.path)} cannot be loaded, and is left out.`
    },
    close: closers.closeAll,
  }
}

/** Keeps the state of the engine, which every scan asks for, by the signatures that clamd has loaded. */
function makeLoadedState(library: ReturnType<typeof makeSignatureLibrary>, version: string) {
  const toState = (signatures: number | undefined): EngineState => {
    const { digest, officialAt } = library.describe()
    return { version, verdictVersion: `${version} ${digest}`, signatures, signaturesAt: officialAt }
  }
  let state = toState(0)

  return {
    findState: () => state,
    /** A file that is replaced meanwhile cannot be counted; the change of that file leads to the next count. */
    async note() {
      state = toState(state.signatures)
      const signatures = await library.count().catch(() => state.signatures)
      state = { ...state, signatures }
    },
  }
}

const importCommand = 'npm run assay -- signatures import DIRECTORY'

function toRemedy(updater: Updater | undefined): string {
  if (updater === undefined) {
    return `run ${importCommand}, or install freshclam and set ASSAY_SIGNATURE_HOURS to more than 0`
  }
  return updater.findLast()?.ok === false
    ? `the last download failed, so make ASSAY_SIGNATURE_MIRROR reachable or run ${importCommand}`
    : `wait until Assay has downloaded them, or run ${importCommand}`
}

function warnAboutSandbox({ kind, megabytes, scratchDir }: Sandbox, { scratchMegabytes, log }: OwnClamdOptions) {
  if (kind !== 'private') log.warn({ scratch: scratchDir }, `ClamAV has no private sandbox: ${kind}`)
  if (megabytes >= scratchMegabytes) return
  log.warn(
    `ClamAV can unpack into ${megabytes} MB, not into the ${scratchMegabytes} MB of ASSAY_SCRATCH_MB; content that needs ` +
      `more ends in Error:ScanLimitExceeded. Make ${dirname(scratchDir)} larger, or ASSAY_SCRATCH_MB smaller.`,
  )
}

/** Returns a function that loads changed signatures into clamd. Calls during a reload run after it. */
function makeRefresh(deps: {
  library: SignatureLibrary
  client: ClamdClient
  findRunning(): RunningClamd | undefined
  onReloaded(): Promise<void>
  log: Logger
}) {
  const { library, client, log } = deps
  let reloading: Promise<void> = Promise.resolve()

  async function reload() {
    await library.tryNewFiles()
    if (!(await library.placeFiles())) return
    const clamd = deps.findRunning()
    if (clamd === undefined) return
    const done = clamd.whenReloaded(AbortSignal.timeout(reloadTimeoutMs))
    await client.sendCommand('RELOAD', 10_000)
    if (!(await done)) throw new Error('clamd refused the new signatures and keeps the old ones')
    await deps.onReloaded()
    // Open connections would keep using the old signatures.
    client.close()
  }

  return () => {
    reloading = reloading
      .then(reload)
      .catch((error: unknown) => log.error({ err: error }, 'signatures cannot be loaded'))
    return reloading
  }
}

/** Throws when another service runs on this data directory. Waits for the clamd of a service that is stopping. */
async function requireNoOtherClamd(path: string) {
  for (let tries = 0; await isAnswering({ path }, pingTimeoutMs); tries++) {
    if (tries === maxPings) {
      throw new OperatorMistake(
        `Another Assay runs on this data directory: its ClamAV answers at ${path}. Stop it first.`,
      )
    }
    await sleep(100)
  }
}

/** The address of the clamd of a service that runs on this data directory. */
export async function findRunningClamd(dataDir: string): Promise<ServerAddress | undefined> {
  const address = { path: toSocket(join(dataDir, 'clamav')) }
  return (await isAnswering(address, pingTimeoutMs)) ? address : undefined
}

/** Chooses clamd's user and sandbox, for a trial of signatures as for the service. */
export function makeSandboxChooser(
  options: Pick<OwnClamdOptions, 'binary' | 'dataDir' | 'scratchMegabytes' | 'acceptsDisk'>,
) {
  const { binary, dataDir, scratchMegabytes, acceptsDisk } = options
  mkdirSync(dataDir, { recursive: true, mode: 0o711 })
  const ownDirs = [dirname(binary), dataDir]
  const user = chooseUnprivileged('engine', clamdUsers, [...ownDirs, ...launcherDirs])
  // What the launcher needs to reach its own files, it drops before it becomes clamd.
  if (user.hasCapability) user.hasCapability = chooseUnprivileged('engine', clamdUsers, ownDirs).hasCapability === true
  return {
    user,
    chooseForDir: (dir: string) => chooseSandbox({ name: 'ClamAV', user, dir, scratchMegabytes, acceptsDisk }),
  }
}

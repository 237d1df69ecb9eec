import { mkdirSync } from 'node:fs'
import { basename, dirname, join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import type { EngineState, ScanEngine } from '../../domain/ports/engines.ts'
import { OperatorMistake } from '../../domain/problem.ts'
import { newClosers } from '../../runtime/closers.ts'
import type { Logger } from '../../runtime/logger.ts'
import { chooseUnprivileged } from '../../runtime/unprivileged.ts'
import { watchDirectories } from '../../runtime/watch-directories.ts'
import { readVersion } from './binaries.ts'
import { makeClamAvEngine } from './clamav-engine.ts'
import { toClamdConfig } from './clamd-config.ts'
import { prepareClamdDir, toSocket } from './clamd-dir.ts'
import { makeClamdClient } from './client.ts'
import { type ClamdAddress, isAnswering } from './connection.ts'
import { openUpdater, type UpdateResult } from './freshclam.ts'
import { chooseSandbox } from './sandbox.ts'
import type { SignatureDirs } from './signature-files.ts'
import { makeSignatureLibrary } from './signature-library.ts'
import { startClamd } from './start-clamd.ts'
import { superviseClamd } from './supervisor.ts'
import { makeTrial } from './trial.ts'

export type OwnClamdOptions = {
  binary: string
  dataDir: string
  dirs: SignatureDirs
  threads: number
  scratchMegabytes: number
  acceptsDisk: boolean
  updates: { binary: string; everyHours: number; mirror: string; urls: string[] } | undefined
  log: Logger
}

/** What there is beside the engine itself. */
export type ClamAv = {
  engine: ScanEngine
  /** A sentence about what is wrong, or undefined. */
  findFault(): string | undefined
  /** Looks for new signatures now; undefined where that is not ours to do. */
  updateNow?: (() => Promise<UpdateResult>) | undefined
  /** Signature files that cannot be loaded. */
  listRefused?(): { path: string; reason: string }[]
  close(): Promise<void>
}

const clamdUsers = ['clamav', 'node', 'nobody']
const reloadTimeoutMs = 180_000
const pollMs = 10_000
const aloneTries = 30
const pingTimeoutMs = 2000

/** A clamd of our own: below the data directory, in a sandbox, watched, with signatures that are always current. */
export async function openOwnClamd(options: OwnClamdOptions): Promise<ClamAv> {
  const { binary, dataDir, dirs, threads, log } = options
  const closers = newClosers()
  mkdirSync(dirs.own, { recursive: true })
  mkdirSync(dirs.official, { recursive: true })
  const { user, choose } = makeChoices(options)
  const { dir, socket, configFile, databaseDir } = prepareClamdDir(dataDir, 'clamav', user)
  await requireAlone(socket)
  const sandbox = choose(dir)
  if (sandbox.kind !== 'private')
    log.warn({ scratch: sandbox.scratchDir }, `ClamAV has no space of its own: ${sandbox.kind}`)
  if (sandbox.megabytes < options.scratchMegabytes) {
    log.warn(
      `ClamAV can unpack into ${sandbox.megabytes} MB, not the ${options.scratchMegabytes} of ASSAY_SCRATCH_MB; what needs ` +
        `more is answered with 500. Make ${dirname(sandbox.scratchDir)} larger, or ASSAY_SCRATCH_MB smaller.`,
    )
  }
  const trial = makeTrial({ binary, dataDir, user, chooseSandbox: choose })
  const library = makeSignatureLibrary({ dirs, databaseDir, trial, log })
  const config = toClamdConfig({ databaseDir, socket, scratchDir: sandbox.scratchDir, threads })
  const version = readVersion(binary)
  let loaded = library.describe()

  const launch = () => startClamd({ binary, config, configFile, socket, sandbox })
  const supervisor = superviseClamd({
    socket,
    log,
    async start() {
      library.place()
      const clamd = await launch().catch(async (error) => {
        if (!(await library.tryAll())) throw error
        library.place()
        return launch()
      })
      loaded = library.describe()
      return clamd
    },
  })
  closers.add(supervisor.close)
  const client = makeClamdClient({ address: { path: socket } })
  closers.add(client.close)

  const findState = (): EngineState => ({
    version,
    verdictVersion: `${version} ${loaded.digest}`,
    signatures: loaded.count,
    signaturesAt: loaded.releasedAt,
  })

  let reloading: Promise<void> = Promise.resolve()
  /** One after the other: a change that comes while signatures are loaded is loaded next. */
  const refresh = () => {
    reloading = reloading
      .then(reload)
      .catch((error: unknown) => log.error({ err: error }, 'signatures cannot be loaded'))
    return reloading
  }
  async function reload() {
    await library.tryNew()
    const clamd = supervisor.findRunning()
    if (!library.place() || clamd === undefined) return
    const done = clamd.whenReloaded(AbortSignal.timeout(reloadTimeoutMs))
    await client.ask('RELOAD', 10_000)
    if (!(await done)) throw new Error('clamd refused the new signatures and keeps the old ones')
    loaded = library.describe()
    // Kept connections would go on with the signatures they began with.
    client.close()
    log.info({ signatures: loaded.count }, 'new signatures are in use')
  }
  const watcher = watchDirectories({ dirs: [dirs.own, dirs.official], pollMs, onChange: refresh })
  closers.add(watcher.close)
  const updater =
    options.updates && openUpdater({ ...options.updates, officialDir: dirs.official, user, onRun: refresh, log })
  if (updater !== undefined) closers.add(updater.close)
  // One that does not come up is tried again and again; meanwhile scans are refused and /readyz says why.
  await supervisor.firstTry
  return {
    engine: makeClamAvEngine({
      client,
      findState,
      onRetry: (error) => log.warn({ reason: error.message }, 'ClamAV did not answer; the scan is tried once more'),
    }),
    updateNow: updater?.runNow,
    listRefused: library.listRefused,
    findFault() {
      if (supervisor.findRunning() === undefined) return 'ClamAV does not run; the log says why. It is started again.'
      const [first] = library.listRefused()
      return first && `The signature file ${basename(first.path)} cannot be loaded, and is left out.`
    },
    close: closers.closeAll,
  }
}

/** A clamd ends with its service: one that still answers after a while belongs to another service. */
async function requireAlone(path: string) {
  for (let tries = 0; await isAnswering({ path }, pingTimeoutMs); tries++) {
    if (tries === aloneTries) {
      throw new OperatorMistake(
        `Another Assay runs on this data directory: its ClamAV answers at ${path}. Stop it first.`,
      )
    }
    await sleep(100)
  }
}

/** The clamd of a service that runs on this data directory. */
export async function findRunningClamd(dataDir: string): Promise<ClamdAddress | undefined> {
  const address = { path: toSocket(join(dataDir, 'clamav')) }
  return (await isAnswering(address, pingTimeoutMs)) ? address : undefined
}

/** As whom clamd runs, and in what sandbox; the same for a trial as for the real one. */
export function makeChoices(options: Pick<OwnClamdOptions, 'binary' | 'dataDir' | 'scratchMegabytes' | 'acceptsDisk'>) {
  const { binary, dataDir, scratchMegabytes, acceptsDisk } = options
  mkdirSync(dataDir, { recursive: true, mode: 0o711 })
  const user = chooseUnprivileged('engine', clamdUsers, [dirname(binary), dataDir])
  return {
    user,
    choose: (dir: string) => chooseSandbox({ user, dir, scratchMegabytes, acceptsDisk }),
  }
}

import type { Logger } from '../../runtime/logger.ts'
import type { Unprivileged } from '../../runtime/process.ts'
import type { OnEscape } from '../jail/policy.ts'
import type { Sandbox } from '../jail/sandbox.ts'
import { prepareClamdDir, removeClamdDir, toClamdConfig } from './clamd-config.ts'
import {
  countSignatures,
  findOfficialDate,
  listPlacedFiles,
  listSignatureFiles,
  placeSignatureFiles,
  type SignatureDirs,
  type SignatureFile,
  toDigest,
} from './signature-files.ts'
import { startClamd } from './supervisor.ts'

/** `officialAt` is the build time of ClamAV's official databases; undefined when they are not loaded. */
export type LoadedSignatures = { digest: string; officialAt: Date | undefined }

/** Decides which signature files clamd gets: all, except those that it cannot load. */
export function makeSignatureLibrary(deps: {
  dirs: SignatureDirs
  databaseDir: string
  trial: Pick<Trial, 'findFault'>
  log: Logger
}) {
  const { dirs, databaseDir, trial, log } = deps
  /** Refused files by path. A file is tried again when it has changed. */
  const refused = new Map<string, { version: string; reason: string }>()
  let placed: SignatureFile[] = []
  let loadable: SignatureFile[] = []
  let placing: Promise<boolean> = Promise.resolve(false)
  /** Numbers of signatures by the version of their file. */
  let counts = new Map<string, number>()

  return {
    /** Updates clamd's directory. Returns whether its files have changed. Calls run one after the other. */
    placeFiles(): Promise<boolean> {
      placing = placing.then(placeNow, placeNow)
      return placing
    },
    /** Tries the files that are new; one by one only when they do not load together. */
    async tryNewFiles() {
      const placedVersions = new Set(placed.map(toVersion))
      const newFiles = listSignatureFiles(dirs).filter(
        (file) => !placedVersions.has(toVersion(file)) && refused.get(file.path)?.version !== toVersion(file),
      )
      if (newFiles.length > 0 && (await trial.findFault(newFiles)) !== undefined) await tryEach(newFiles)
    },
    /** Finds the files because of which clamd does not start. Returns whether there are any. */
    async tryAllFiles(): Promise<boolean> {
      const before = refused.size
      await tryEach(placed.filter(({ path }) => !path.startsWith(dirs.shipped)))
      return refused.size > before
    },
    describe: (): LoadedSignatures => ({ digest: toDigest(loadable), officialAt: findOfficialDate(loadable) }),
    /** Counts the signatures in clamd's directory, which may take a second with large files. */
    count: () => countAll(loadable),
    listRefused: () => [...refused].map(([path, { reason }]) => ({ path, reason })),
  }

  async function placeNow(): Promise<boolean> {
    const before = toDigest(loadable)
    const files = listSignatureFiles(dirs)
    for (const [path, { version }] of refused) {
      if (!files.some((file) => file.path === path && toVersion(file) === version)) refused.delete(path)
    }
    await placeSignatureFiles(files, new Set(refused.keys()), databaseDir)
    placed = files.filter(({ path }) => !refused.has(path))
    loadable = listPlacedFiles(databaseDir)
    return toDigest(loadable) !== before
  }

  /** Counts the files that have changed, and takes the counts of the others from the last time. */
  async function countAll(files: SignatureFile[]): Promise<number> {
    const before = counts
    counts = new Map()
    let sum = 0
    for (const file of files) {
      const count = before.get(toVersion(file)) ?? (await countSignatures(file))
      counts.set(toVersion(file), count)
      sum += count
    }
    return sum
  }

  async function tryEach(files: SignatureFile[]) {
    for (const file of files) {
      const reason = await trial.findFault([file])
      if (reason === undefined) continue
      refused.set(file.path, { version: toVersion(file), reason })
      log.error({ file: file.path, reason }, 'a signature file cannot be loaded; the others are in use')
    }
  }
}

export type SignatureLibrary = ReturnType<typeof makeSignatureLibrary>

const toVersion = ({ path, bytes, changedMs }: SignatureFile) => `${path} ${bytes} ${changedMs}`

/** Numbers the trials of this process: two operators may add files at the same time. */
let trials = 0

/**
 * Loads signature files into a separate clamd to see whether they load: one broken file makes clamd refuse the whole
 * database, and it does not even start then. Takes about 0.1 s for small files.
 */
export function makeTrial(deps: {
  binary: string
  dataDir: string
  user: Unprivileged
  chooseSandbox(dir: string): Sandbox
  onEscape?: OnEscape | undefined
}) {
  /** Loads the files into a clamd of its own, and ends that when `use` has ended, or when `signal` aborts. */
  async function withClamd<T>(
    files: SignatureFile[],
    use: (clamd: TrialClamd) => Promise<T>,
    signal?: AbortSignal,
  ): Promise<T> {
    signal?.throwIfAborted()
    trials++
    const name = `clamav-trial-${process.pid}-${trials}`
    const place = prepareClamdDir(deps.dataDir, name, deps.user)
    try {
      await placeSignatureFiles(files, new Set(), place.databaseDir)
      const sandbox = deps.chooseSandbox(place.dir)
      const config = toClamdConfig({ place, scratchDir: sandbox.scratchDir, threads: 2 })
      const { binary, onEscape } = deps
      const clamd = await startClamd({ binary, place, config, sandbox, onEscape, signal })
      try {
        return await use({ socket: place.socket })
      } finally {
        clamd.kill('SIGKILL')
        await clamd.exited
      }
    } finally {
      removeClamdDir(place.dir)
    }
  }

  return {
    withClamd,
    /** The reason why the files do not load, or undefined. */
    async findFault(files: SignatureFile[], signal?: AbortSignal): Promise<string | undefined> {
      try {
        await withClamd(files, async () => {}, signal)
        return undefined
      } catch (error) {
        return (error as Error).message
      }
    },
  }
}

type TrialClamd = { socket: string }
export type Trial = ReturnType<typeof makeTrial>

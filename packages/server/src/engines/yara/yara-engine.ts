import { EngineDown, type ScanEngine } from '../../domain/ports/engines.ts'
import type { Logger } from '../../runtime/logger.ts'
import type { Unprivileged } from '../../runtime/unprivileged.ts'
import { watchDirectories } from '../../runtime/watch-directories.ts'
import { type LoadedRules, loadRules } from './load-rules.ts'
import type { ProcessPool } from './process-pool.ts'
import { type ListedFile, listRuleFiles } from './rule-files.ts'
import { scanWith } from './scan-with.ts'
import type { BackendName, Refused } from './wire.ts'

export type YaraDeps = {
  /** The operator's: every `*.yar` and `*.yara` in it. Need not exist. */
  rulesDir: string
  /** Paths of rules of our own. */
  shipped: string[]
  log: Logger
  /** libyara where there is one, by default. */
  backend?: BackendName
  processes?: number
  /** How processes are started by root. */
  runAs?: Unprivileged
  /** What a scan may take, beside what its size adds. */
  scanMs?: number
  compileMs?: number
  waitMs?: number
  maxWaiting?: number
  pollMs?: number
}

export type YaraEngine = ScanEngine & {
  /** False while there are no rules: then nothing runs, and asking it is a waste. */
  isActive(): boolean
  /** Resolves when the rules that are on disk now are those that scan. */
  reload(): Promise<void>
  /** Files of rules that are not in use, and why. */
  listRefused(): Refused[]
  close(): Promise<void>
}

const defaults = {
  processes: 2,
  scanMs: 30_000,
  compileMs: 120_000,
  waitMs: 120_000,
  maxWaiting: 1000,
  pollMs: 3000,
  backend: undefined,
  runAs: undefined,
}
const firstRetryMs = 1000
const lastRetryMs = 60_000

/**
 * Operators' YARA rules, in processes of their own. Changed rules are compiled by new processes, which then take over;
 * the old ones finish what they have begun, so that no scan fails by it.
 */
export async function openYaraEngine(deps: YaraDeps): Promise<YaraEngine> {
  const settings = { ...defaults, ...deps }
  const { rulesDir, shipped, log } = settings
  let loaded: LoadedRules | undefined
  let refused: Refused[] = []
  /** What is scanned with, or was tried last; undefined before the first look. */
  let seen: string | undefined
  let failures = 0
  let retryAt = 0
  const closing = new AbortController()
  const { signal } = closing
  const retiring = new Set<ProcessPool>()

  const look = async () => {
    const [listing] = await Promise.allSettled([listRuleFiles(rulesDir, shipped)])
    const marks = listing.status === 'fulfilled' ? toMarks(listing.value) : String(listing.reason)
    const isCompleted = failures === 0 || performance.now() < retryAt
    if (signal.aborted || (marks === seen && isCompleted)) return
    seen = marks
    try {
      const listed = listing.status === 'fulfilled' ? listing.value : fail(listing.reason)
      const fresh = await loadRules({ ...settings, signal }, listed)
      if (signal.aborted) return await fresh.pool?.kill()
      take(fresh)
      failures = 0
    } catch (error) {
      if (signal.aborted) return
      failures += 1
      retryAt = performance.now() + Math.min(firstRetryMs * 2 ** (failures - 1), lastRetryMs)
      log.error({ err: error }, 'YARA rules could not be loaded; what was in use before stays')
    }
  }

  const take = (fresh: LoadedRules) => {
    const known = new Set(refused.map(toText))
    for (const one of fresh.refused) if (!known.has(toText(one))) log.error(one, 'a file of YARA rules is refused')
    refused = fresh.refused
    const old = loaded
    loaded = fresh
    if (fresh.pool !== undefined) log.info({ rules: fresh.pool.compiled.rules }, 'YARA rules are in use')
    if (old?.pool === undefined) return
    const { pool } = old
    retiring.add(pool)
    pool.retire().finally(() => retiring.delete(pool))
  }

  const reload = makeOneAtATime(look)
  await reload()
  const watcher = watchDirectories({ dirs: [rulesDir], pollMs: settings.pollMs, onChange: () => void reload() })

  return {
    name: 'YARA',
    kind: 'malware',
    opensContainers: false,
    isActive: () => loaded?.pool !== undefined || loaded === undefined,
    findState() {
      return loaded?.pool?.isUp() ? loaded.state : undefined
    },
    async scan(content, scanSignal) {
      if (signal.aborted) throw new EngineDown('YARA is closed')
      return scanWith(() => getPool(loaded), content, { scanMs: settings.scanMs, signal: scanSignal })
    },
    reload,
    listRefused: () => refused,
    async close() {
      closing.abort()
      watcher.close()
      await reload()
      await Promise.all([loaded?.pool, ...retiring].map((pool) => pool?.kill()))
    },
  }
}

function getPool(loaded: LoadedRules | undefined) {
  if (loaded === undefined) throw new EngineDown('YARA has not been able to load its rules')
  return loaded.pool
}

function fail(reason: unknown): never {
  throw reason
}

/** Whoever asks while one runs shares the next, which begins after the asking. */
function makeOneAtATime(work: () => Promise<void>): () => Promise<void> {
  let running: Promise<void> = Promise.resolve()
  let next: Promise<void> | undefined
  return () => {
    next ??= running
      .catch(() => {})
      .then(() => {
        next = undefined
        running = work()
        return running
      })
    return next
  }
}

const toMarks = (listed: ListedFile[]) => listed.map(({ mark }) => mark).join('\n')
const toText = ({ file, reason }: Refused) => `${file}: ${reason}`

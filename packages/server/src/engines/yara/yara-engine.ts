import type { Content } from '../../domain/content/content.ts'
import { EngineDown, type EngineReport, type ScanEngine, type Work } from '../../domain/ports/engines.ts'
import { makeOneAtATime } from '../../runtime/closers.ts'
import type { Logger } from '../../runtime/logger.ts'
import { watchDirectories } from '../../runtime/watch-files.ts'
import { engineOptions } from '../child-process/engine-options.ts'
import type { ProcessPool } from '../child-process/process-pool.ts'
import { toBody } from '../child-process/send-body.ts'
import { type Child, LimitExceeded, ProcessDied } from '../child-process/start-child.ts'
import type { OnEscape } from '../jail/policy.ts'
import { type LoadedRules, type LoadOptions, loadRules } from './load-rules.ts'
import type { Answer, BackendName, Refused } from './requests.ts'
import { type ListedFile, listRuleFiles } from './rule-files.ts'

export type YaraDeps = Partial<typeof engineOptions.yara> & {
  /** The operator's directories: every `*.yar` and `*.yara` in them. They need not exist. */
  rulesDirs: string[]
  /** Paths of rules that Assay ships. */
  shipped: string[]
  log: Logger
  /** By default libyara where it is installed, else YARA-X. */
  backend?: BackendName
  pollMs?: number
  onEscape?: OnEscape | undefined
}

export type YaraEngine = ScanEngine & {
  /** False while there are no rules: then no process runs, and a scan would find nothing. */
  isActive(): boolean
  /** Resolves when scans use the rules that are on disk now. */
  reload(): Promise<void>
  /** Rule files that are not in use, and why. */
  listRefused(): Refused[]
  listPids(): number[]
  close(): Promise<void>
}

const defaults = { ...engineOptions.yara, pollMs: 3000, backend: undefined }

/**
 * The operator's YARA rules, in processes of their own. New processes compile changed rules and then take over; the old
 * processes finish the scans that they have begun, so that no scan fails because of a change.
 */
export async function openYaraEngine(deps: YaraDeps): Promise<YaraEngine> {
  const settings = { ...defaults, ...deps }
  const closing = new AbortController()
  const rules = makeRules(settings, closing.signal)
  await rules.reload()
  const { rulesDirs, pollMs, scanMs } = settings
  const watcher = watchDirectories({ dirs: rulesDirs, pollMs, onChange: () => void rules.reload() })

  return {
    name: 'YARA',
    kind: 'malware',
    opensContainers: false,
    marksContainers: () => false,
    isActive: () => rules.find()?.pool !== undefined || rules.find() === undefined,
    findState() {
      const loaded = rules.find()
      return loaded?.pool?.isUp() ? loaded.state : undefined
    },
    async scan(content, work) {
      if (closing.signal.aborted) throw new EngineDown('YARA is closed')
      return scanContent(() => getPool(rules.find()), content, { scanMs, work })
    },
    reload: rules.reload,
    listRefused: rules.listRefused,
    listPids: () => rules.find()?.pool?.listPids() ?? [],
    async close() {
      closing.abort()
      watcher.close()
      await rules.close()
    },
  }
}

function getPool(loaded: LoadedRules | undefined) {
  if (loaded === undefined) throw new EngineDown('YARA has not been able to load its rules')
  return loaded.pool
}

const firstRetryMs = 1000
const lastRetryMs = 60_000

type RulesDeps = Omit<LoadOptions, 'signal'> & { rulesDirs: string[]; shipped: string[] }

/** Holds the rules in use, and replaces them when the files have changed. */
function makeRules(deps: RulesDeps, signal: AbortSignal) {
  const { log } = deps
  let loaded: LoadedRules | undefined
  let refused: Refused[] = []
  /** The files that are in use or were tried last; undefined before the first attempt. */
  let lastMarks: string | undefined
  let failures = 0
  let retryAt = 0
  const retiring = new Set<ProcessPool>()

  async function loadChanges() {
    const [listing] = await Promise.allSettled([listRuleFiles(deps.rulesDirs, deps.shipped)])
    const marks = listing.status === 'fulfilled' ? toMarks(listing.value) : String(listing.reason)
    const mayRetry = failures > 0 && performance.now() >= retryAt
    if (signal.aborted || (marks === lastMarks && !mayRetry)) return
    lastMarks = marks
    try {
      if (listing.status === 'rejected') throw listing.reason
      const newRules = await loadRules({ ...deps, signal }, listing.value, loaded?.files)
      if (signal.aborted) return await newRules.pool?.close()
      replaceRules(newRules)
      failures = 0
    } catch (error) {
      if (signal.aborted) return
      failures += 1
      retryAt = performance.now() + Math.min(firstRetryMs * 2 ** (failures - 1), lastRetryMs)
      log.error({ err: error }, 'YARA rules could not be loaded; the rules in use stay')
    }
  }

  function replaceRules(newRules: LoadedRules) {
    const reported = new Set(refused.map(toText))
    for (const file of newRules.refused) if (!reported.has(toText(file))) log.error(file, 'a YARA rule file is refused')
    refused = newRules.refused
    const pool = loaded?.pool
    loaded = newRules
    if (newRules.state !== undefined) log.info({ rules: newRules.state.signatures }, 'YARA rules are in use')
    if (pool === undefined) return
    retiring.add(pool)
    void pool.retire().finally(() => retiring.delete(pool))
  }

  const reload = makeOneAtATime(loadChanges)
  return {
    reload,
    find: () => loaded,
    listRefused: () => refused,
    async close() {
      await reload()
      await Promise.all([loaded?.pool, ...retiring].map((pool) => pool?.close()))
    },
  }
}

const toMarks = (listed: ListedFile[]) => listed.map(({ mark }) => mark).join('\n')
const toText = ({ file, reason }: Refused) => `${file}: ${reason}`

const attempts = 2
/** 5 MB/s, where libyara scans 100 MB/s. */
const msPerByte = 1 / 5000
/** How much longer than its processor time a scan may take on a busy machine. */
const maxSlowdown = 8

/**
 * Scans once more when the process died or hung, because the content may not be the cause. A scan that took too much
 * processor time is not repeated.
 */
export async function scanContent(
  findPool: () => ProcessPool | undefined,
  content: Content,
  { scanMs, work }: { scanMs: number; work: Work },
): Promise<EngineReport> {
  const { signal } = work
  const maxProcessorMs = Math.ceil(scanMs + content.bytes * msPerByte)
  let death: unknown
  for (let attempt = 0; attempt < attempts; attempt++) {
    // The pool is looked up for each attempt, because the rules may have changed. Without rules there is nothing to
    // find.
    const pool = findPool()
    if (pool === undefined) return { findings: [], doubts: [], suspectsContainer: false }
    try {
      const report = pool.use((child) => requestScan(child, content, { maxProcessorMs, signal }), work)
      return await rejectOnAbort(report, signal)
    } catch (error) {
      if (error instanceof LimitExceeded)
        return { findings: [], doubts: ['ScanLimitExceeded'], suspectsContainer: false }
      if (!(error instanceof ProcessDied)) throw error
      death = error
    }
  }
  throw new EngineDown(`The YARA process died ${attempts} times on the same content`, { cause: death })
}

async function requestScan(
  child: Child,
  content: Content,
  { maxProcessorMs, signal }: { maxProcessorMs: number; signal: AbortSignal },
): Promise<EngineReport> {
  const elapsedMs = maxProcessorMs * maxSlowdown
  const limits = { sendMs: elapsedMs, answerMs: elapsedMs, maxProcessorMs, signal, ownsChunks: !content.isInMemory }
  const answer = await child.sendRequest<Answer>({ kind: 'scan', bytes: content.bytes }, toBody(content), limits)
  if ('failure' in answer) throw new EngineDown(answer.failure)
  if (!('findings' in answer)) throw new EngineDown('The YARA process gave no result')
  if (answer.bytes !== content.bytes) throw new EngineDown(`YARA scanned ${answer.bytes} bytes of ${content.bytes}`)
  return { findings: answer.findings, doubts: answer.limited ? ['ScanLimitExceeded'] : [], suspectsContainer: false }
}

/**
 * Lets the caller go at once while the process finishes its scan. Killing the process instead would let callers who
 * disconnect make every scan wait until the rules are compiled again.
 */
function rejectOnAbort<T>(work: Promise<T>, signal: AbortSignal): Promise<T> {
  return new Promise((resolve, reject) => {
    const abort = () => reject(signal.reason)
    signal.addEventListener('abort', abort, { once: true })
    work.then(resolve, reject).finally(() => signal.removeEventListener('abort', abort))
  })
}

import type { ScanKind, ScanMode, ScanResult, ScanResultType } from '@assay/contract'
import { v7 } from 'uuid'
import { drawRandom } from '../accounts/keys.ts'
import { type Clock, toIsoText } from '../clock.ts'
import type { Content } from '../content/content.ts'
import { newCache } from '../new-cache.ts'
import type { JobTurn } from '../ports/engines.ts'
import type { ListEntry, ListStore } from '../ports/hash-list-store.ts'

export type Scan = {
  id: string
  kind: ScanKind
  status: ScanResultType
  contentLength: number
  contentType: string
  contentName: string | null
  signals: string[] | null
  metadata: Record<string, string> | null
  createdAt: Date
  completedAt: Date | null
}

/** A scan as it is first recorded: with its result when the caller waited for it, otherwise pending. */
export type NewScan = Scan & { mode: ScanMode; region: string }

/** The fields that the result of a scan fills in. */
export type FinalResult = Pick<Scan, 'status' | 'signals' | 'metadata' | 'contentLength' | 'contentType'>

/** The fields of a scan that describe its content. */
export type ContentFields = Pick<Scan, 'contentLength' | 'contentType' | 'metadata'>

/** The content fields of a scan whose URL was not downloaded yet, or yielded nothing. */
export const unknownContentFields: ContentFields = {
  contentLength: 0,
  contentType: 'application/octet-stream',
  metadata: null,
}

/**
 * A UUID of version 7: it begins with the time, so that scans of the same time lie together in the index. The time is
 * the database's, because scans are partitioned by it and deleted with their partition.
 */
export const newScanId = (at: Date): string => v7({ msecs: at.getTime(), random: drawRandom(16) })

/** A scan in the form of the HTTP interface. All keys are present, except `content_name` when no name is known. */
export const toScanResult = (scan: Scan): ScanResult => ({
  id: scan.id,
  scan_type: scan.kind,
  status: scan.status,
  content_length: scan.contentLength,
  content_type: scan.contentType,
  signals: scan.signals,
  metadata: scan.metadata,
  created_at: toIsoText(scan.createdAt),
  completed_at: scan.completedAt === null ? null : toIsoText(scan.completedAt),
  ...(scan.contentName === null ? {} : { content_name: scan.contentName }),
})

/** The options of a scan that its verdict depends on, beside the content. */
export type ScanOptions = {
  kind: ScanKind
  contentName: string | null
  flagsSexy: boolean
  /** The account that asks, which alone is served with verdicts that its scans left in the cache. Null: the operator. */
  accountId: string | null
  /** The scan belongs to a test key: the name decides the result, and no engine runs. */
  isTest: boolean
  /** The turn of a background scan. Undefined while a caller waits for the result. */
  job?: JobTurn
  /** Returns a signal that is aborted when the caller leaves. Most scans never need one, hence a function. */
  abortWhenClientLeaves?(): AbortSignal
}

export type Verdict = {
  status: 'clean' | 'threat' | 'error'
  signals: string[]
  metadata: Record<string, string>
  /** Signals of the parts that were not scanned: they remain when an operator allows everything that was found. */
  doubts?: string[]
}

/** Scans content for a verdict. Throws when an engine cannot answer. */
export type Assess = (content: Content, options: ScanOptions) => Promise<Verdict>

/** The most signals that a result lists. */
export const maxSignals = 50

/** Content that an account asks about. */
export type CacheKey = { accountId: string | null; sha256: string }

/**
 * Results for content that was scanned before, by account and SHA-256: a response that came sooner would tell an account
 * what others have scanned. Each entry carries the version of the engines and signatures that made it, and does not
 * count under any other version.
 */
export function makeVersionedCache<T extends object>({ entries }: { entries: number }) {
  const cache = entries === 0 ? undefined : newCache<{ version: string; value: T }>(entries)

  return {
    find(key: CacheKey, version: string): T | undefined {
      const entry = cache?.get(toCacheText(key))
      return entry?.version === version ? entry.value : undefined
    },
    set(key: CacheKey, version: string, value: T) {
      cache?.set(toCacheText(key), { version, value })
    },
  }
}

const toCacheText = ({ accountId, sha256 }: CacheKey) => `${accountId ?? ''} ${sha256}`

export type VersionedCache<T extends object> = ReturnType<typeof makeVersionedCache<T>>

/** Applies the operator's allow and block lists to every verdict. */
export function withLists(assess: Assess, listCurrent: () => ListEntry[]): Assess {
  return async (content, options) => {
    const verdict = await assess(content, options)
    const entries = listCurrent()
    if (entries.length === 0) return verdict
    const bySha256 = entries.filter(({ matches, value }) => matches === 'sha256' && value === content.sha256)
    const bySignal = entries.filter(({ matches, value }) => matches === 'signal' && verdict.signals.includes(value))
    return applyEntries(verdict, [...bySha256, ...bySignal], options.kind === 'malware' ? 'Virus' : 'Classification')
  }
}

/**
 * Takes back what was found. Parts that were not scanned remain, whoever says that the content is harmless: a result is
 * never clean for content that was not read completely.
 */
export function clearFindings(verdict: Verdict, metadata: Verdict['metadata']): Verdict {
  const { doubts = [] } = verdict
  return { ...verdict, status: doubts.length > 0 ? 'error' : 'clean', signals: doubts, metadata }
}

/** A block wins over an allowance. An allowance changes only a threat: an error says that content was not scanned. */
function applyEntries(verdict: Verdict, entries: ListEntry[], prefix: 'Virus' | 'Classification'): Verdict {
  const block = entries.find(({ list }) => list === 'block')
  if (block !== undefined) {
    if (verdict.status === 'threat') return verdict
    const metadata = toListedMetadata(verdict, block, [block])
    return { ...verdict, status: 'threat', signals: [`${prefix}:Blocked`], metadata }
  }
  const [first] = entries
  if (verdict.status !== 'threat' || first === undefined) return verdict
  const metadata = toListedMetadata(verdict, first, entries)
  if (entries.some(({ matches }) => matches === 'sha256')) return clearFindings(verdict, metadata)
  const remainingSignals = verdict.signals.filter((signal) => !entries.some(({ value }) => value === signal))
  if (remainingSignals.length > 0) return { ...verdict, signals: remainingSignals }
  // A full list may be cut off: a signal that it does not show could remain.
  if (verdict.signals.length >= maxSignals) return verdict
  return clearFindings(verdict, metadata)
}

/**
 * The status that the engines gave is kept, so that the result can be revised when its entry is removed. Entries for
 * signals revise nothing, so a result that they decided names these signals, and keeps its status.
 */
function toListedMetadata({ metadata, status }: Verdict, { reason, matches }: ListEntry, entries: ListEntry[]) {
  const listed = { engines_status: status, ...metadata, listed: reason }
  if (matches === 'sha256') return listed
  return { ...listed, listed_signals: JSON.stringify([...new Set(entries.map(({ value }) => value))]) }
}

/** Keeps the allow and block lists in memory, read again every `everyMs` and by `refresh` after a change on this node. */
export async function openLists(deps: {
  store: ListStore
  /** The clock of the database, by which entries expire. */
  clock: Clock
  everyMs: number
  reportFailure(error: unknown): void
}) {
  let entries = await deps.store.listEntries()
  const refresh = async () => {
    entries = await deps.store.listEntries()
  }
  const timer = setInterval(() => void refresh().catch(deps.reportFailure), deps.everyMs).unref()
  return {
    listCurrent: () => entries.filter(({ expiresAt }) => expiresAt === null || expiresAt > deps.clock.now()),
    refresh,
    close: () => clearInterval(timer),
  }
}

import { findKnownDoubts, mayHoldContent } from '../content/container.ts'
import type { Content } from '../content/content.ts'
import { mayHoldEncoded } from '../content/encoded-text.ts'
import type { ContentStore, ContentWriter } from '../ports/content-store.ts'
import {
  type Doubt,
  type EngineReport,
  maxUnpackedBytes,
  type ScanEngine,
  type SeenMembers,
  type UnpackBudget,
  type Unpacker,
  type Work,
} from '../ports/engines.ts'
import type { Semaphore } from '../semaphore.ts'
import type { Ballot } from './ballot.ts'
import { type Turn, type WorkClock, WorkExceeded } from './work-clock.ts'

/** The name of a finding, and the path to the member that it was found in; `[]` stands for the content itself. */
type Finding = { name: string; path: string[] }

export type InspectionReport = {
  findings: Finding[]
  doubts: Doubt[]
}

/** `ballot` collects what each engine says, and decides when the findings suffice; without it, one does. */
type InspectOptions = { contentName?: string | null; ballot?: Ballot | undefined }

/** How deep containers are unpacked. At each depth one process of the unpacker waits for the next. */
const maxDepth = 8
/** Members that one scan may unpack, as many as clamd reads. Ordinary archives have fewer; the time limits the others. */
const maxMembers = 50_000
/** Members that are scanned again to tell where a finding is: with more, the time is worth more than the place. */
const maxLocated = 10_000

/** Limits of one scan, at all depths together. Tests give smaller ones. */
export type UnpackLimits = { members: number; unpackedBytes: number }

type InspectionDeps = {
  listEngines(): ScanEngine[]
  unpacker: Unpacker
  contents: ContentStore
  /** Bounds the scans of large content, and of content that is not in memory. */
  semaphore: Semaphore
  clock: WorkClock
  limits?: Partial<UnpackLimits>
}

/** Scans content with every engine, and unpacks the containers that an engine cannot open. */
export function makeInspection(deps: InspectionDeps) {
  return {
    /** Throws `EngineDown` when an engine cannot answer. */
    inspect: (
      content: Content,
      turn?: Turn,
      { contentName = null, ballot }: InspectOptions = {},
    ): Promise<InspectionReport> =>
      deps.clock.run(async (work) => {
        if (content.load !== undefined && mayHoldContent(content)) await content.load()
        const inspectNow = () => inspectWithinLimits(deps, content, { work, contentName, ballot })
        return isLight(content) ? inspectNow() : deps.semaphore.use(inspectNow, work)
      }, turn),
  }
}

export type Inspection = ReturnType<typeof makeInspection>

const maxLightBytes = 1024 * 1024

const isLight = ({ isInMemory, bytes }: Content) => isInMemory && bytes <= maxLightBytes

async function inspectWithinLimits(
  deps: InspectionDeps,
  content: Content,
  start: Pick<Search, 'work' | 'contentName' | 'ballot'>,
): Promise<InspectionReport> {
  const result: InspectionReport = { findings: [], doubts: [] }
  const { members, unpackedBytes } = { members: maxMembers, unpackedBytes: maxUnpackedBytes, ...deps.limits }
  const budget = { members, bytes: unpackedBytes }
  const { signal } = start.work
  try {
    const inspected = new Set([content.sha256])
    await inspectContent(deps, content, { ...start, covering: noEngines, path: [], budget, inspected, result })
  } catch (error) {
    if (!signal.aborted) throw error
    if (!(signal.reason instanceof WorkExceeded)) throw signal.reason
    result.doubts.push('ScanLimitExceeded')
  }
  return result
}

const noEngines: ReadonlySet<string> = new Set()

type Search = {
  contentName: string | null
  ballot: Ballot | undefined
  /** Names of engines that have read this content within its container; kept where engines vote. */
  covering: ReadonlySet<string>
  path: string[]
  budget: UnpackBudget
  /** The hashes of all content of this scan: readings of the same bytes often meet again in the same content. */
  inspected: Set<string>
  work: Work
  result: InspectionReport
}

async function inspectContent(deps: InspectionDeps, content: Content, search: Search) {
  const { path, work, result } = search
  const knownDoubts = await findKnownDoubts(content)
  result.doubts.push(...(knownDoubts ?? []))
  if (knownDoubts?.includes('ScanLimitExceeded') === true) {
    endUnpacking(search.budget)
    return
  }
  const engines = deps.listEngines()
  const place = { depth: path.length, name: path.at(-1) ?? search.contentName ?? '' }
  const { ballot } = search
  const reports = await scanWithAll(engines, work, (engine, ownWork) => {
    const scan = () => engine.scan(content, ownWork, place)
    return ballot === undefined ? scan() : ballot.ask(engine, scan)
  })
  const covering = ballot?.noteContent(engines, reports, search.covering) ?? noEngines
  const findings = reports.flatMap((report) => report.findings.map((name): Finding => ({ name, path })))
  result.findings.push(...findings)
  result.doubts.push(...reports.flatMap((report) => report.doubts))
  const hasFindings = findings.length > 0
  if (hasFindings && ballot?.isDecided() !== false) {
    // The verdict is certain. Unpacking can still tell which member it is about.
    if (knownDoubts !== undefined) await locateFindings(deps, content, search)
    return
  }
  if (reports.some(({ doubts }) => doubts.includes('ScanLimitExceeded'))) {
    endUnpacking(search.budget)
    return
  }
  // Only signatures of Assay tell that a container begins further in; without them all content is read.
  const isMarked = engines.some((engine) => engine.marksContainers())
  // An engine names one of several findings, so behind one that does not decide there may be others, or a container.
  const isSuspect = hasFindings || reports.some(({ suspectsContainer }) => suspectsContainer)
  if (knownDoubts !== undefined || !isMarked || isSuspect || (await mayHoldEncoded(content))) {
    const seen = isMarked && !hasFindings ? chooseSeen(engines, reports) : 'give'
    const { doubts, members } = await inspectMembers(deps, content, { ...search, covering }, seen)
    const isUnopened = reports.some(({ hasUnopened }) => hasUnopened === true) && members + doubts.length === 0
    result.doubts.push(...(isUnopened ? ['UnsupportedContainer' as const] : doubts))
  }
}

/**
 * Lets all engines scan at once. When one fails, the others are ended, and the failure is passed on only after all have
 * stopped: the memory of released content soon holds bytes of another account, which must not go to an engine outside.
 */
async function scanWithAll(
  engines: ScanEngine[],
  work: Work,
  scan: (engine: ScanEngine, work: Work) => Promise<EngineReport>,
): Promise<EngineReport[]> {
  const [first] = engines
  if (first !== undefined && engines.length === 1) return [await scan(first, work)]
  const ending = new AbortController()
  const { signal } = ending
  const end = () => ending.abort(work.signal.reason)
  if (work.signal.aborted) end()
  work.signal.addEventListener('abort', end, { once: true })
  const ownWork = { ...work, signal }
  const results = await Promise.all(
    engines.map(async (engine) => {
      try {
        return await scan(engine, ownWork)
      } catch (error) {
        ending.abort(error)
        return undefined
      }
    }),
  )
  work.signal.removeEventListener('abort', end)
  const reports = results.filter((report) => report !== undefined)
  // The reason is the first failure; the later ones follow from it.
  if (reports.length < engines.length) throw signal.reason
  return reports
}

/** Content beyond a limit cannot become clean: nothing else of it needs to be unpacked. */
function endUnpacking(budget: UnpackBudget) {
  budget.members = 0
  budget.bytes = 0
}

/** Members that ClamAV opens need no second scan, unless an engine does not open them or suspects a container in one. */
function chooseSeen(engines: ScanEngine[], reports: EngineReport[]): SeenMembers {
  if (!engines.every((engine) => engine.opensContainers)) return 'give'
  // clamd names only one of several alerts: behind a doubt may be a container that it could not open.
  return reports.some(({ suspectsContainer, doubts }) => suspectsContainer || doubts.length > 0) ? 'search' : 'skip'
}

async function inspectMembers(
  deps: InspectionDeps,
  content: Content,
  search: Search,
  seen: SeenMembers,
): Promise<{ doubts: Doubt[]; members: number }> {
  if (search.path.length >= maxDepth) return { doubts: ['ScanLimitExceeded'], members: 0 }
  await content.load?.()
  let members = 0
  const doubts = await deps.unpacker.unpack(content, {
    budget: search.budget,
    work: search.work,
    seen,
    async take(member) {
      members++
      const inner = await store(deps.contents.newWriter(toWriterOptions(search.work)), member.bytes)
      try {
        if (inner.bytes === 0 || search.inspected.has(inner.sha256)) return
        search.inspected.add(inner.sha256)
        await inspectContent(deps, inner, { ...search, path: [...search.path, member.path] })
      } finally {
        await inner.release()
      }
    },
  })
  return { doubts, members }
}

/** Adds the findings of members. A failure is ignored, because the verdict does not depend on it. */
async function locateFindings(deps: InspectionDeps, content: Content, search: Search) {
  const result: InspectionReport = { findings: [], doubts: [] }
  search.budget.members = Math.min(search.budget.members, maxLocated)
  await inspectMembers(deps, content, { ...search, ballot: undefined, result }, 'give').catch(() => {})
  search.result.findings.push(...result.findings)
}

const toWriterOptions = ({ accountId }: Work) => (accountId === undefined ? {} : { accountId })

async function store(writer: ContentWriter, bytes: AsyncIterable<Buffer>): Promise<Content> {
  try {
    for await (const chunk of bytes) await writer.write(chunk)
    return await writer.finish()
  } catch (error) {
    await writer.abort()
    throw error
  }
}

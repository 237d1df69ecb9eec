import { isCompound } from '../content/compound.ts'
import { type Container, findContainer } from '../content/container.ts'
import type { Content } from '../content/content.ts'
import type { ContentStore, ContentWriter } from '../ports/content-store.ts'
import {
  type Doubt,
  EngineBusy,
  type EngineReport,
  maxUnpackedBytes,
  type ScanEngine,
  type UnpackBudget,
  type Unpacker,
} from '../ports/engines.ts'
import type { Semaphore } from '../semaphore.ts'
import type { Finding, Inspected } from './verdict.ts'

/** A process of the unpacker waits at each depth. ClamAV itself goes further down in what it can open. */
const maxDepth = 8
const maxMembers = 10_000
/** For one scan, from its turn on: the caller of a synchronous scan waits for it. */
const deadlineMs = 50_000

type Deps = {
  listEngines(): ScanEngine[]
  unpacker: Unpacker
  contents: ContentStore
  /** Turns for content that is not in memory; small content needs none. */
  semaphore: Semaphore
}

/** Looks at content with every engine, and at the members of containers that an engine cannot open by itself. */
export function makeInspection(deps: Deps) {
  return {
    /** Throws `EngineDown` when an engine cannot answer. */
    inspect(content: Content): Promise<Inspected> {
      const inspectNow = () => inspectWithin(deps, content)
      return content.whole === undefined ? deps.semaphore.use(inspectNow) : inspectNow()
    },
  }
}

export type Inspection = ReturnType<typeof makeInspection>

async function inspectWithin(deps: Deps, content: Content): Promise<Inspected> {
  const found: Inspected = { findings: [], doubts: [] }
  // Not AbortSignal.timeout: its timers live until they fire, and there may be thousands of scans in that time.
  const deadline = new AbortController()
  const timer = setTimeout(() => deadline.abort(), deadlineMs)
  const { signal } = deadline
  const budget = { members: maxMembers, bytes: maxUnpackedBytes }
  try {
    await look(deps, content, { path: [], budget, signal, found })
  } catch (error) {
    // Without a turn nothing was looked at: that is no limit of the content.
    if (!signal.aborted || error instanceof EngineBusy) throw error
    found.doubts.push('ScanLimitExceeded')
  } finally {
    clearTimeout(timer)
  }
  return found
}

type Search = { path: string[]; budget: UnpackBudget; signal: AbortSignal; found: Inspected }

async function look(deps: Deps, content: Content, search: Search) {
  const { path, signal, found } = search
  const engines = deps.listEngines()
  const container = await findContainer(content)
  const reports = await Promise.all(engines.map((engine) => engine.scan(content, signal)))
  const findings = reports.flatMap((report) => report.findings.map((name): Finding => ({ name, path })))
  found.findings.push(...findings)
  found.doubts.push(...reports.flatMap((report) => report.doubts), ...(container?.doubts ?? []))
  if (!engines.some((engine) => engine.opensContainers) && (await isCompound(content))) {
    found.doubts.push('UnsupportedContainer')
  }
  if (findings.length > 0) {
    // The verdict stands. What remains is where: worth a look only inside something that can be opened.
    if (container?.unpackable === true) await locate(deps, content, search)
    return
  }
  if (isUnseen(reports, engines, container)) found.doubts.push(...(await lookInside(deps, content, search)))
}

/** Whether there may be members that some engine has not seen. */
function isUnseen(reports: EngineReport[], engines: ScanEngine[], container: Container | undefined): boolean {
  // One that holds more than may be unpacked cannot become clean: a bomb is not worth the work.
  if (container?.doubts.includes('ScanLimitExceeded') === true) return false
  if (reports.some(({ unopened }) => unopened)) return true
  if (container === undefined) return false
  if (!container.engineOpens || engines.some((engine) => !engine.opensContainers)) return true
  // Of several such alerts clamd names any one: behind this may be a container that it could not open.
  return container.unpackable && reports.some(({ doubts }) => doubts.length > 0)
}

async function lookInside(deps: Deps, content: Content, search: Search): Promise<Doubt[]> {
  if (search.path.length >= maxDepth) return ['ScanLimitExceeded']
  return deps.unpacker.unpack(content, {
    budget: search.budget,
    signal: search.signal,
    async take(member) {
      const inner = await store(deps.contents.newWriter(), member.bytes)
      try {
        if (inner.bytes > 0) await look(deps, inner, { ...search, path: [...search.path, member.path] })
      } finally {
        await inner.release()
      }
    },
  })
}

/** Adds the findings of members; whatever goes wrong here changes nothing. */
async function locate(deps: Deps, content: Content, search: Search) {
  const found: Inspected = { findings: [], doubts: [] }
  await lookInside(deps, content, { ...search, found }).catch(() => {})
  search.found.findings.push(...found.findings)
}

async function store(writer: ContentWriter, bytes: AsyncIterable<Buffer>): Promise<Content> {
  try {
    for await (const chunk of bytes) await writer.write(chunk)
    return await writer.finish()
  } catch (error) {
    await writer.abort()
    throw error
  }
}

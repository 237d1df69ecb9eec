import type { Content } from '../../domain/content/content.ts'
import { findMediaType } from '../../domain/content/media-type.ts'
import {
  type ContentPlace,
  EngineBusy,
  EngineDown,
  type EngineReport,
  type ScanEngine,
  type Work,
} from '../../domain/ports/engines.ts'
import { makeSemaphore } from '../../domain/semaphore.ts'
import type { Logger } from '../../runtime/logger.ts'
import type { CommonOptions, ExternalAdapter } from './adapter.ts'
import { makeEngineCalls, toCleanText, toReason } from './engine-calls.ts'

const maxFindings = 50
const maxNameLength = 200
/** Scans that may wait for an engine, and how long a caller does. */
const waiting = { maxWaiting: 10_000, maxWaitMs: 20_000 }

type Deps = {
  adapter: ExternalAdapter
  options: CommonOptions
  /** Identifies the configuration of the engine, for the version of its verdicts. */
  configDigest: string
  log: Logger
}

/** Makes an engine of Assay of an engine outside. */
export function makeExternalEngine(deps: Deps): ScanEngine & { close(): Promise<void> } {
  const { options, configDigest } = deps
  const { name, kind, isRequired, seesMembers, concurrency } = options
  const calls = makeEngineCalls(deps)
  const permits = makeSemaphore({ count: concurrency, ...waiting })

  async function scan(content: Content, work: Work, place: ContentPlace): Promise<EngineReport> {
    const fileName = toFileName(place.name)
    const answer = await permits.use(() => calls.ask(content, work.signal, fileName), work)
    const names = answer.findings.slice(0, maxFindings).map((found) => toCleanText(found, maxNameLength) || 'Unnamed')
    const { doubts = [] } = answer
    // An advisory engine that has not read all of the content has no opinion of it.
    if (!isRequired && doubts.length > 0 && names.length === 0)
      return { ...nothing, failure: `it says ${doubts.join(', ')}` }
    if (!isRequired && answer.degraded !== undefined) {
      return { ...nothing, failure: toCleanText(`it is degraded: ${answer.degraded}`, maxNameLength) }
    }
    return { findings: names, doubts: isRequired ? doubts : [], suspectsContainer: false }
  }

  /** Nothing tells when the signatures of the engine change, so its verdicts count for a time that the operator gives. */
  function toVerdictVersion(version: string | undefined): string | undefined {
    if (options.cacheMs === 0) return undefined
    return `${name} ${version ?? ''} ${configDigest} ${Math.floor(performance.now() / options.cacheMs)}`
  }

  return {
    name,
    kind: 'malware',
    // For an engine that sees only whole files, Assay need not unpack any.
    opensContainers: !seesMembers,
    marksContainers: () => false,
    findState() {
      const version = calls.findVersion()
      const verdictVersion = toVerdictVersion(version)
      return { version: version ?? name, verdictVersion, signatures: undefined, signaturesAt: undefined }
    },
    async scan(content, work, place = { depth: 0, name: '' }) {
      if (!(await wants(content, place, options))) return { ...nothing, isSkipped: true }
      try {
        return await scan(content, work, place)
      } catch (error) {
        work.signal.throwIfAborted()
        const reason = toReason(error)
        if (!isRequired) return { ...nothing, failure: reason }
        const Kind = error instanceof EngineBusy ? EngineBusy : EngineDown
        throw new Kind(`The engine ${name} did not answer: ${reason}`, { cause: error })
      }
    },
    external: { kind, isRequired, findHealth: calls.findHealth },
    close: calls.close,
  }
}

const nothing: EngineReport = { findings: [], doubts: [], suspectsContainer: false }

/** Whether the operator's filters let the engine see the content. */
async function wants(content: Content, { depth }: ContentPlace, options: CommonOptions): Promise<boolean> {
  const { seesMembers, minBytes, maxBytes, types, skipTypes } = options
  if ((depth > 0 && !seesMembers) || content.bytes < minBytes || content.bytes > maxBytes) return false
  if (types === undefined && skipTypes === undefined) return true
  const type = await findType(content)
  const matches = (pattern: string) =>
    pattern === type || (pattern.endsWith('/*') && type.startsWith(pattern.slice(0, -1)))
  return (types === undefined || types.some(matches)) && skipTypes?.some(matches) !== true
}

/** The media type without its charset. */
async function findType(content: Content): Promise<string> {
  await content.load?.()
  const type = content.description?.contentType ?? (await findMediaType(content.head, content.bytes))
  return type.replace(/;.*/s, '')
}

/** The last part of a path. */
const toFileName = (path: string) => toCleanText(path.replace(/^.*[/\\]/s, ''), maxNameLength) || 'content'

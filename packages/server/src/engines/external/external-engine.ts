import { createHash } from 'node:crypto'
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
import type { VoteRule } from '../../domain/scans/ballot.ts'
import { makeSemaphore } from '../../domain/semaphore.ts'
import { openParts } from '../../runtime/closers.ts'
import type { Logger } from '../../runtime/logger.ts'
import { makeOptionReader, type OptionReader, type TomlTable } from '../../runtime/toml-options.ts'
import {
  type AdapterDeps,
  type CommonOptions,
  type ExternalAdapter,
  type ExternalKind,
  readCommonOptions,
  readVoteRule,
} from './adapter.ts'
import { clamdKind } from './clamd.ts'
import { commandKind } from './command.ts'
import { makeEngineCalls, toCleanText, toReason } from './engine-calls.ts'
import { httpKind } from './http.ts'
import { icapKind } from './icap/icap-adapter.ts'

/** The kinds of engines that `kind = "..."` in assay.toml can name. */
const kinds: Readonly<Record<string, ExternalKind>> = {
  clamd: clamdKind,
  command: commandKind,
  http: httpKind,
  icap: icapKind,
}

/** Engines of Assay itself, whose tables only say how their findings count. */
const builtInNames = ['ClamAV', 'YARA']
const builtInKind = 'builtin'

type Definition = { options: CommonOptions; configDigest: string; open: ReturnType<ExternalKind['read']> }

type Tables = {
  definitions: Definition[]
  /** The rules by which findings count, by the name of the engine. */
  rules: Map<string, VoteRule>
  /** Identifies all tables, for the version of verdicts. */
  digest: string
  mistakes: string[]
}

/** Reads the tables `[[engines]]` of assay.toml. Every mistake is a sentence that names its line and option. */
export function readEngineDefinitions(tables: readonly TomlTable[]): Tables {
  const mistakes: string[] = []
  const names = new Set<string>()
  const rules = new Map<string, VoteRule>()
  const definitions = tables.flatMap((table): Definition[] => {
    const reader = makeOptionReader(table, mistakes, 'engine')
    const name = readName(reader, names)
    const kindName = reader.requireText('kind', `one of ${listKinds()}`)
    const isBuiltIn = kindName === builtInKind
    checkBuiltInName(reader, name, isBuiltIn)
    const kind = Object.hasOwn(kinds, kindName) ? kinds[kindName] : undefined
    if (kind === undefined && !isBuiltIn) {
      if (kindName !== '') reader.note('kind', `must be one of ${listKinds()}. Given: ${JSON.stringify(kindName)}`)
      return []
    }
    rules.set(name, readVoteRule(reader))
    const options = isBuiltIn ? undefined : readCommonOptions(reader, { name, kind: kindName })
    const open = kind?.read(reader)
    reader.finish()
    if (options === undefined || open === undefined) return []
    return [{ options, open, configDigest: toDigest(table.values) }]
  })
  return { definitions, rules, digest: toDigest(tables.map(({ values }) => values)), mistakes }
}

function readName(reader: OptionReader, names: Set<string>): string {
  const must = 'must be 1 to 40 letters, digits, dots, hyphens or underscores'
  const name = reader.requireText('name', '"a short name for results"', /^[A-Za-z0-9][\w.-]{0,39}$/, must)
  if (names.has(name.toLowerCase())) reader.note('name', 'belongs to another engine already: choose another one')
  names.add(name.toLowerCase())
  return name
}

function checkBuiltInName(reader: OptionReader, name: string, isBuiltIn: boolean) {
  const isReserved = builtInNames.some((builtIn) => builtIn.toLowerCase() === name.toLowerCase())
  if (isBuiltIn && !builtInNames.includes(name)) {
    reader.note('name', `must be ${builtInNames.join(' or ')} for the kind ${builtInKind}`)
  } else if (isReserved && !isBuiltIn) {
    reader.note('name', `belongs to an engine of Assay: choose another one, or set kind = "${builtInKind}"`)
  }
}

const listKinds = () => [...Object.keys(kinds), builtInKind].toSorted().join(', ')

const toDigest = (values: unknown) => createHash('sha256').update(JSON.stringify(values)).digest('hex').slice(0, 16)

/** Opens the engines that `readEngineDefinitions` found, without waiting for any of them to answer. */
export const openExternalEngines = (definitions: Definition[], deps: Omit<AdapterDeps, 'name' | 'concurrency'>) =>
  openParts(async (closers) => {
    const engines: ScanEngine[] = []
    for (const { options, configDigest, open } of definitions) {
      const { name, concurrency } = options
      const adapter = await open({ name, concurrency, ...deps })
      const engine = makeExternalEngine({ adapter, options, configDigest, log: deps.log })
      closers.add(engine.close)
      engines.push(engine)
    }
    return { engines, close: closers.closeAll }
  })

const maxFindings = 50
const maxNameLength = 200

type EngineDeps = {
  adapter: ExternalAdapter
  options: CommonOptions
  /** Identifies the configuration of the engine, for the version of its verdicts. */
  configDigest: string
  log: Logger
}

/** Makes an engine of Assay of an engine outside. */
export function makeExternalEngine(deps: EngineDeps): ScanEngine & { close(): Promise<void> } {
  const { options, configDigest } = deps
  const { name, kind, isRequired, seesMembers, concurrency } = options
  const calls = makeEngineCalls(deps)
  const permits = makeSemaphore({ count: concurrency, maxWaiting: 10_000, maxWaitMs: 20_000 })

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

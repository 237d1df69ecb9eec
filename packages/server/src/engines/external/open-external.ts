import { createHash } from 'node:crypto'
import type { ScanEngine } from '../../domain/ports/engines.ts'
import type { VoteRule } from '../../domain/scans/ballot.ts'
import { openParts } from '../../runtime/closers.ts'
import { makeOptionReader, type OptionReader, type TomlTable } from '../../runtime/toml-options.ts'
import { type AdapterDeps, type CommonOptions, type ExternalKind, readCommonOptions, readVoteRule } from './adapter.ts'
import { clamdKind } from './clamd.ts'
import { commandKind } from './command.ts'
import { makeExternalEngine } from './external-engine.ts'
import { httpKind } from './http.ts'
import { icapKind } from './icap/icap-adapter.ts'

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

/** The kinds of engines that `kind = "..."` in assay.toml can name. */
const kinds: Readonly<Record<string, ExternalKind>> = {
  clamd: clamdKind,
  command: commandKind,
  http: httpKind,
  icap: icapKind,
}

import { createHash } from 'node:crypto'
import type { ScanEngine } from '../../domain/ports/engines.ts'
import { openParts } from '../../runtime/closers.ts'
import type { AdapterDeps, ExternalKind } from './adapter.ts'
import { type CommonOptions, readCommonOptions } from './common-options.ts'
import { makeExternalEngine } from './external-engine.ts'
import { kinds } from './kinds.ts'
import { type EngineTable, makeOptionReader } from './options.ts'

/** Names under which results list the engines of Assay itself. */
const builtIn = ['clamav', 'yara']

type Definition = { options: CommonOptions; configDigest: string; open: ReturnType<ExternalKind['read']> }

/** Reads the tables `[[engines]]` of assay.toml. Every mistake is a sentence that names its line and option. */
export function readEngineTables(tables: readonly EngineTable[]): { definitions: Definition[]; mistakes: string[] } {
  const mistakes: string[] = []
  const names = new Set(builtIn)
  const definitions = tables.flatMap((table): Definition[] => {
    const reader = makeOptionReader(table, mistakes)
    const nameMust = 'must be 1 to 40 letters, digits, dots, hyphens or underscores'
    const name = reader.requireText('name', '"a short name for results"', /^[A-Za-z0-9][\w.-]{0,39}$/, nameMust)
    const kindName = reader.requireText('kind', `one of ${listKinds()}`)
    if (names.has(name.toLowerCase())) reader.note('name', 'belongs to another engine already: choose another one')
    names.add(name.toLowerCase())
    const kind = Object.hasOwn(kinds, kindName) ? kinds[kindName] : undefined
    if (kind === undefined) {
      if (kindName !== '') reader.note('kind', `must be one of ${listKinds()}. Given: ${JSON.stringify(kindName)}`)
      return []
    }
    const options = readCommonOptions(reader, { name, kind: kindName })
    const open = kind.read(reader)
    reader.finish()
    return [{ options, open, configDigest: toDigest(table.values) }]
  })
  return { definitions, mistakes }
}

const listKinds = () => Object.keys(kinds).toSorted().join(', ')

const toDigest = (values: EngineTable['values']) =>
  createHash('sha256').update(JSON.stringify(values)).digest('hex').slice(0, 16)

/** Opens the engines that `readEngineTables` found, without waiting for any of them to answer. */
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

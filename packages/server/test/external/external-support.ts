import type { CommonOptions, ExternalAdapter } from '../../src/engines/external/adapter.ts'
import { makeExternalEngine, readEngineDefinitions } from '../../src/engines/external/external-engine.ts'
import type { OnEscape } from '../../src/engines/jail/policy.ts'
import { silentLog } from '../support/silent-log.ts'

const defaults: CommonOptions = {
  name: 'other',
  kind: 'clamd',
  isRequired: true,
  timeoutMs: 60_000,
  retries: 0,
  concurrency: 8,
  seesMembers: false,
  minBytes: 0,
  maxBytes: 1e12,
  types: undefined,
  skipTypes: undefined,
  cacheMs: 0,
  checkMs: 3_600_000,
}

/** An engine around an adapter of the test, which also gets the probes of the engine, named probe.txt. */
export function newExternalEngine(scan: ExternalAdapter['scan'], change: Partial<CommonOptions> = {}) {
  const options = { ...defaults, ...change }
  const adapter = { scan, close: async () => {} }
  return makeExternalEngine({ adapter, options, configDigest: 'digest', log: silentLog })
}

/** Opens the adapter that one table of assay.toml describes. */
export async function openAdapter(
  values: Record<string, unknown>,
  deps: { dataDir?: string; onEscape?: OnEscape } = {},
): Promise<ExternalAdapter> {
  const table = { origin: 'assay.toml line 1', values: { name: 'other', ...values } }
  const { definitions, mistakes } = readEngineDefinitions([table])
  if (mistakes.length > 0) throw new Error(mistakes.join('\n'))
  const open = definitions[0]?.open
  if (open === undefined) throw new Error('There is no engine')
  return open({ name: 'other', concurrency: 2, dataDir: '/nonexistent', acceptsDisk: false, log: silentLog, ...deps })
}

export const findMistakes = (...tables: Record<string, unknown>[]): string[] =>
  readEngineDefinitions(tables.map((values, index) => ({ origin: `assay.toml line ${index + 1}`, values }))).mistakes

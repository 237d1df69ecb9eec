import { type Config, ConfigMistakes } from '../config/load-config.ts'
import type { ScanEngine } from '../domain/ports/engines.ts'
import type { OnEscape } from '../engines/jail/escape.ts'
import type { Logger } from '../runtime/logger.ts'

type ExternalEngines = { engines: readonly ScanEngine[]; close(): Promise<void> }

const none: ExternalEngines = { engines: [], close: async () => {} }

/** Opens the engines of assay.toml. Without any, their code is not even loaded. */
export async function openExternal(
  config: Pick<Config, 'engines' | 'dataDir' | 'scratch'>,
  deps: { log: Logger; onEscape?: OnEscape | undefined },
): Promise<ExternalEngines> {
  if (config.engines.length === 0) return none
  const { openExternalEngines, readEngineTables } = await import('../engines/external/open-external.ts')
  const { definitions, mistakes } = readEngineTables(config.engines)
  if (mistakes.length > 0) throw new ConfigMistakes(mistakes)
  const { dataDir, scratch } = config
  return openExternalEngines(definitions, { ...deps, dataDir, acceptsDisk: scratch === 'disk' })
}

/** Throws `ConfigMistakes` for wrong options of engines, before anything is opened. */
export async function checkExternal(config: Pick<Config, 'engines'>) {
  if (config.engines.length === 0) return
  const { readEngineTables } = await import('../engines/external/open-external.ts')
  const { mistakes } = readEngineTables(config.engines)
  if (mistakes.length > 0) throw new ConfigMistakes(mistakes)
}

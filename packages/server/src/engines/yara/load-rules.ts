import { createHash } from 'node:crypto'
import type { EngineState } from '../../domain/ports/engines.ts'
import { openProcessPool, type PoolDeps, type ProcessPool } from './process-pool.ts'
import { type ListedFile, type RuleFile, readRuleFiles } from './rule-files.ts'
import type { Compiled, Refused } from './wire.ts'

export type LoadedRules = {
  refused: Refused[]
  /** Undefined when there is not one rule. */
  pool: ProcessPool | undefined
  state: EngineState | undefined
}

/** Raise when the same rules would find other things by a change of ours. */
const revision = 'assay-yara-1'

export async function loadRules(deps: PoolDeps, listed: ListedFile[]): Promise<LoadedRules> {
  const { files, refused: unread } = await readRuleFiles(listed)
  if (files.length === 0) return { refused: unread, pool: undefined, state: undefined }
  const pool = await openProcessPool(deps, files)
  const { compiled } = pool
  const refused = [...unread, ...compiled.refused]
  if (compiled.rules > 0) return { refused, pool, state: toState(compiled, files) }
  await pool.kill()
  return { refused, pool: undefined, state: undefined }
}

function toState(compiled: Compiled, files: RuleFile[]): EngineState {
  const refused = new Set(compiled.refused.map(({ file }) => file))
  const used = files.filter(({ file }) => !refused.has(file))
  const digest = createHash('sha256').update(JSON.stringify([revision, compiled.version, compiled.build]))
  for (const { file, text } of used) digest.update(JSON.stringify([file, text.length])).update(text)
  const changes = used.map(({ changedAt }) => changedAt.getTime())
  return {
    version: compiled.version,
    verdictVersion: digest.digest('hex'),
    signatures: compiled.rules,
    signaturesAt: changes.length === 0 ? undefined : new Date(Math.max(...changes)),
  }
}

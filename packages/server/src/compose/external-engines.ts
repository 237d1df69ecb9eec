import { type Config, ConfigMistakes } from '../config/load-config.ts'
import { findQuorum } from '../config/verdict-policy.ts'
import type { Clock } from '../domain/ports/clock.ts'
import type { ScanEngine } from '../domain/ports/engines.ts'
import { defaultVoteRule, type VerdictPolicy, type VoteRule } from '../domain/scans/ballot.ts'
import type { Disagreement, Voting } from '../domain/scans/malware-scan.ts'
import type { OnEscape } from '../engines/jail/escape.ts'
import type { Logger } from '../runtime/logger.ts'

type EngineConfig = Pick<Config, 'engines' | 'verdictPolicy'>

type Deps = {
  log: Logger
  onEscape?: OnEscape | undefined
  clock: Clock
  /** The policy of an account as text; null for that of the installation. */
  findAccountPolicy(accountId: string): Promise<string | null>
}

export type ExternalEngines = {
  engines: readonly ScanEngine[]
  /** Undefined while one finding of any engine is a threat, and there are no engines but those of Assay. */
  voting: Voting | undefined
  /** Changes with the policy of the installation and with the tables of engines; undefined where engines do not vote. */
  policyVersion: string | undefined
  listDisagreements(): RecordedDisagreement[]
  countDisagreements(): number
  close(): Promise<void>
}

type RecordedDisagreement = Disagreement & { at: Date }

export const noExternal: ExternalEngines = {
  engines: [],
  voting: undefined,
  policyVersion: undefined,
  listDisagreements: () => [],
  countDisagreements: () => 0,
  close: async () => {},
}

/** Opens the engines of assay.toml, and what lets engines vote. Without both, their code is not even loaded. */
export async function openExternal(
  config: EngineConfig & Pick<Config, 'dataDir' | 'scratch'>,
  deps: Deps,
): Promise<ExternalEngines> {
  const tables = await readTables(config)
  if (tables === undefined) return noExternal
  const { openExternalEngines } = await import('../engines/external/open-external.ts')
  const { dataDir, scratch } = config
  const opening = { ...deps, dataDir, acceptsDisk: scratch === 'disk' }
  const { engines, close } = await openExternalEngines(tables.definitions, opening)
  const disagreements = makeDisagreements(deps.clock)
  const findRule = (engine: string): VoteRule => tables.rules.get(engine) ?? defaultVoteRule
  const { own, findPolicy } = makePolicies(config, deps.findAccountPolicy, tables.digest)
  return {
    engines,
    close,
    voting: { findPolicy, findRule, onDisagreement: disagreements.add },
    policyVersion: own.version,
    listDisagreements: disagreements.list,
    countDisagreements: disagreements.count,
  }
}

/** Throws `ConfigMistakes` for wrong options of engines, before anything is opened. */
export async function checkExternal(config: EngineConfig) {
  await readTables(config)
}

async function readTables(config: EngineConfig) {
  if (config.engines.length === 0 && config.verdictPolicy === 'any') return undefined
  const { readEngineDefinitions } = await import('../engines/external/open-external.ts')
  const tables = readEngineDefinitions(config.engines)
  const mistakes = [...tables.mistakes, ...checkQuorum(config, tables)]
  if (mistakes.length > 0) throw new ConfigMistakes(mistakes)
  return tables
}

/** A quorum that all engines together cannot reach would make every finding harmless. */
function checkQuorum(
  { verdictPolicy }: EngineConfig,
  tables: { definitions: { options: { name: string } }[]; rules: Map<string, VoteRule> },
): string[] {
  const names = ['ClamAV', 'YARA', ...tables.definitions.map(({ options }) => options.name)]
  const votes = names.reduce((sum, name) => sum + (tables.rules.get(name) ?? defaultVoteRule).weight, 0)
  const { quorum } = toPolicy(verdictPolicy)
  if (quorum <= votes) return []
  return [
    `ASSAY_VERDICT_POLICY needs ${quorum} votes, but all engines together have ${votes}: add engines, or lower it.`,
  ]
}

function toPolicy(text: string): VerdictPolicy {
  const quorum = findQuorum(text)
  return quorum === undefined ? { text: 'any', quorum: 1, version: 'any' } : { text, quorum, version: text }
}

/** How long the policy of an account is remembered. */
const rememberedMs = 5000
const maxRemembered = 10_000

/**
 * The policy of the installation, and a function that finds that of an account. The configuration of all engines is part
 * of their versions, and so of cached verdicts.
 */
function makePolicies({ verdictPolicy }: EngineConfig, find: Deps['findAccountPolicy'], digest: string) {
  const remembered = new Map<string, { policy: VerdictPolicy; until: number }>()
  const toVersioned = (policy: VerdictPolicy): VerdictPolicy => ({ ...policy, version: `${policy.text} ${digest}` })
  const own = toVersioned(toPolicy(verdictPolicy))

  async function findPolicy(accountId: string | null): Promise<VerdictPolicy> {
    if (accountId === null) return own
    const known = remembered.get(accountId)
    if (known !== undefined && known.until > performance.now()) return known.policy
    const text = await find(accountId)
    const policy = text === null ? own : toVersioned(toPolicy(text))
    if (remembered.size >= maxRemembered) remembered.clear()
    remembered.set(accountId, { policy, until: performance.now() + rememberedMs })
    return policy
  }

  return { own, findPolicy }
}

const keptCount = 50

/** Remembers content about which engines disagreed last, on this node. */
function makeDisagreements(clock: Clock) {
  let kept: RecordedDisagreement[] = []
  let count = 0
  return {
    add(disagreement: Disagreement) {
      count++
      kept = [{ ...disagreement, at: clock.now() }, ...kept].slice(0, keptCount)
    },
    list: () => kept,
    count: () => count,
  }
}

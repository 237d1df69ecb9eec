import type { Status } from '@assay/contract/admin'
import { type Config, ConfigMistakes } from '../config/load-config.ts'
import { findQuorum } from '../config/setting.ts'
import type { Clock } from '../domain/clock.ts'
import type { EngineHealth, EngineState, ExternalStatus, ScanEngine } from '../domain/ports/engines.ts'
import type { Check } from '../domain/readiness.ts'
import { defaultVoteRule, type VerdictPolicy, type VoteRule } from '../domain/scans/ballot.ts'
import type { Disagreement, Voting } from '../domain/scans/malware-scan.ts'
import type { OnEscape } from '../engines/jail/policy.ts'
import type { Logger } from '../runtime/logger.ts'
import type { Metrics } from '../runtime/metrics.ts'

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
  const { openExternalEngines } = await import('../engines/external/external-engine.ts')
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
  const { readEngineDefinitions } = await import('../engines/external/external-engine.ts')
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

/** The check of `/readyz`, if there are engines outside of Assay. */
export const listExternalChecks = ({ engines }: ExternalEngines): Check[] =>
  engines.length === 0
    ? []
    : [{ name: 'external engines', vital: false, findFault: async () => engines.map(findFault).find(Boolean) }]

function findFault({ name, external }: ScanEngine): string | undefined {
  const { breaker, fault } = external?.findHealth() ?? {}
  if (breaker !== 'open') return undefined
  const effect = external?.isRequired === true ? 'Scans fail' : 'Verdicts are made without it'
  return `The engine ${name} does not answer: ${fault?.replace(/\.$/, '')}. ${effect} until it does.`
}

/** Registers the metrics of engines outside of Assay; none if there are no such engines. */
export function observeExternal(metrics: Metrics, { engines, countDisagreements }: ExternalEngines) {
  if (engines.length === 0) return
  const read = (pick: (health: EngineHealth) => number) => () =>
    engines.flatMap(({ name, external }) => (external ? [{ label: name, value: pick(external.findHealth()) }] : []))
  const toSeconds = (ms: number | undefined) => (ms ?? 0) / 1000
  const rows: [name: `assay_engine_${string}`, help: string, pick: (health: EngineHealth) => number][] = [
    ['assay_engine_scans_total', 'Scans that an external engine was asked for.', ({ scans }) => scans],
    ['assay_engine_failures_total', 'Attempts that an external engine did not answer.', ({ failures }) => failures],
    ['assay_engine_p50_seconds', 'Median time of the last scans of an external engine.', ({ p50 }) => toSeconds(p50)],
    ['assay_engine_p99_seconds', 'Time of 99 % of its last scans.', ({ p99 }) => toSeconds(p99)],
    ['assay_engine_breaker_open', '1 while it does not answer.', ({ breaker }) => (breaker === 'open' ? 1 : 0)],
  ]
  for (const [name, help, pick] of rows) metrics.byLabel('engine', { name, help }, read(pick))
  const help = 'Content that some engines called a threat and others clean.'
  metrics.total('assay_engine_disagreements_total', help, countDisagreements)
}

/** The part of the status page about engines outside of Assay. */
export function toExternalStatus(
  engines: { name: string; state: EngineState | undefined; external?: ExternalStatus | undefined }[],
  external: ExternalEngines | undefined,
): Pick<Status, 'external_engines' | 'disagreements'> {
  const toNames = (found: { name: string }[]) => found.map(({ name }) => name).join(', ')
  return {
    external_engines: engines.flatMap(({ name, state, external: status }) =>
      status === undefined ? [] : [toRow(name, state, status)],
    ),
    disagreements: {
      count: external?.countDisagreements() ?? 0,
      recent: (external?.listDisagreements() ?? []).map(({ at, sha256, status, opinions }) => ({
        at: at.toISOString(),
        sha256,
        status,
        found: opinions.flatMap(({ name, findings }) => findings.map((finding) => `${name}: ${finding}`)).join('; '),
        clean: toNames(opinions.filter(({ verdict }) => verdict === 'clean')),
      })),
    },
  }
}

function toRow(name: string, state: EngineState | undefined, { kind, isRequired, findHealth }: ExternalStatus) {
  const { breaker, fault = null, scans, failures, p50, p99 } = findHealth()
  const toMs = (ms: number | undefined) => (ms === undefined ? null : Math.round(ms * 10) / 10)
  return {
    name,
    kind,
    version: state === undefined || state.version === name ? null : state.version,
    is_required: isRequired,
    is_open: breaker === 'open',
    fault,
    scans,
    failures,
    p50_ms: toMs(p50),
    p99_ms: toMs(p99),
  }
}

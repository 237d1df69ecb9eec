import type { Status } from '@assay/contract/admin'
import type { EngineHealth, EngineState, ExternalStatus, ScanEngine } from '../domain/ports/engines.ts'
import type { Check } from '../domain/readiness.ts'
import type { Metrics } from '../runtime/metrics.ts'
import type { ExternalEngines } from './external-engines.ts'

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

type Described = { name: string; state: EngineState | undefined; external?: ExternalStatus | undefined }

/** The part of the status page about engines outside of Assay. */
export function toExternalStatus(
  engines: Described[],
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

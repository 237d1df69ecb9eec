import type { NodeStatus, NodeStore } from '../ports/node-store.ts'
import { Problem } from '../problem.ts'
import type { Scan } from './scan.ts'
import type { Scanner } from './scanner.ts'

/** The oldest that ClamAV's official databases may be; `off` when the operator does not want them checked. */
export type MaxSignatureAge = number | 'off'

/** Whether malware scans of a degraded installation are marked in their results, or refused. */
export type WhenDegraded = 'flag' | 'refuse'

/** Whether malware scans miss something that the installation should have: ClamAV, or its official databases. */
export type Degradation = {
  /** One sentence: what is missing, and what the operator can do. Undefined while nothing is. */
  find(): string | undefined
  /** The problem to answer malware scans with; undefined while they are accepted. */
  findRefusal(): Problem | undefined
}

/**
 * Seconds to send in Retry-After: ClamAV's databases are downloaded and loaded in some minutes. Clients that retry by
 * themselves after a short time give up at once, and show the reason.
 */
const retryAfterSeconds = 300

export const makeDegradation = (deps: { find(): string | undefined; whenDegraded: WhenDegraded }): Degradation => ({
  find: deps.find,
  findRefusal() {
    const reason = deps.whenDegraded === 'refuse' ? deps.find() : undefined
    if (reason === undefined) return undefined
    return new Problem({ kind: 'degraded', retryAfterSeconds, detail: `${reason} Nothing was charged.` })
  },
})

export const noDegradation: Degradation = { find: () => undefined, findRefusal: () => undefined }

const hourMs = 3_600_000
const dayMs = 24 * hourMs

/** A sentence about official databases that are missing or old. `remedy` says what to do, and ends the sentence. */
export function findSignatureFault(databases: {
  /** Build time of the databases; undefined when they are missing. */
  builtAt: Date | undefined
  maxAge: MaxSignatureAge
  now: Date
  remedy: string
}): string | undefined {
  const { builtAt, maxAge, now, remedy } = databases
  if (maxAge === 'off') return undefined
  if (builtAt === undefined) {
    return `ClamAV's official databases are missing, so most known malware is not found: ${remedy}.`
  }
  const ageMs = now.getTime() - builtAt.getTime()
  if (ageMs <= maxAge) return undefined
  const age = ageMs < 2 * dayMs ? `${Math.floor(ageMs / hourMs)} hours` : `${Math.floor(ageMs / dayMs)} days`
  return `ClamAV's official databases are ${age} old, so recent malware is not found: ${remedy}.`
}

/** The degradation of all workers together: one that is not degraded can run the scans of a node without engines. */
export function findSharedDegradation(nodes: Pick<NodeStatus, 'roles' | 'isAlive' | 'engines'>[]): string | undefined {
  const workers = nodes.filter(({ roles, isAlive }) => isAlive && roles.includes('worker'))
  const sentences = workers.map(({ engines }) => engines.find(({ degraded }) => degraded !== undefined)?.degraded)
  return sentences.includes(undefined) ? undefined : sentences[0]
}

/** Finds the degradation of the workers, for a node without engines. It is read again every `everyMs`. */
export async function openSharedDegradation(deps: {
  nodes: Pick<NodeStore, 'listNodes'>
  everyMs: number
  reportFailure(error: unknown): void
}) {
  let sentence: string | undefined
  const refresh = async () => {
    try {
      sentence = findSharedDegradation(await deps.nodes.listNodes())
    } catch (error) {
      deps.reportFailure(error)
    }
  }
  await refresh()
  const timer = setInterval(() => void refresh(), deps.everyMs).unref()
  return { find: () => sentence, close: () => clearInterval(timer) }
}

/** Refuses malware scans while the installation is degraded and the operator chose so. Test keys need no engine. */
export function withRefusal(scanner: Scanner, { findRefusal }: Degradation): Scanner {
  const findRefusalOf = ({ kind }: { kind: string }) => (kind === 'malware' ? findRefusal() : undefined)
  return {
    scanContent(content, options) {
      const refusal = findRefusalOf(options)
      return refusal === undefined ? scanner.scanContent(content, options) : Promise.reject(refusal)
    },
    scanUrl(url, options) {
      const refusal = findRefusalOf(options)
      return refusal === undefined ? scanner.scanUrl(url, options) : Promise.reject(refusal)
    },
  }
}

/**
 * Turns `clean` of a degraded installation into an error, for protocols whose clients cannot see `metadata.degraded`:
 * they would take a scan with most signatures missing for a complete one.
 */
export const distrustDegraded = <S extends Pick<Scan, 'status' | 'signals' | 'metadata'>>(scan: S): S =>
  scan.status === 'clean' && scan.metadata?.degraded !== undefined
    ? { ...scan, status: 'error', signals: ['Error:Degraded'] }
    : scan

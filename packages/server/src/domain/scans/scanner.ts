import { maxContentBytes, type ScanMode } from '@assay/contract'
import type { Content } from '../content/content.ts'
import { findImageFormat } from '../content/image-format.ts'
import type { Describer } from '../content/media-type.ts'
import type { AuthorizeDownload } from '../downloads/credentials.ts'
import type { ContentFetcher, ContentStore, FetchResult } from '../ports/content-store.ts'
import type { NodeStatus, NodeStore } from '../ports/operations.ts'
import { Problem } from '../problem.ts'
import type { ImageScan } from './image-scan.ts'
import type { MalwareScan } from './malware-scan.ts'
import { type Assess, type FinalResult, type Scan, type ScanOptions, unknownContentFields } from './scan.ts'

type DownloadOptions = { accountId: string; mode: ScanMode; signal: AbortSignal }
type Download = (url: string, options: ScanOptions & DownloadOptions) => Promise<FetchResult>

/** Chooses the scan by its kind. */
export const makeAssess =
  ({ malware, images }: { malware: MalwareScan; images: ImageScan }): Assess =>
  (content, options) =>
    options.kind === 'malware' ? malware.assess(content, options) : images.assess(content, options)

/** Makes the result of a scan, of given content or of a URL, whether a caller waits for it or a worker runs it. */
export function makeScanner(deps: { describe: Describer; assess: Assess; download: Download }) {
  return { scanContent, scanUrl }

  /** Throws when the engines do not answer. */
  async function scanContent(content: Content, options: ScanOptions): Promise<FinalResult> {
    const { contentType, hashes } = await deps.describe(content, options.accountId)
    const contentFields = { contentLength: content.bytes, contentType }
    if (options.kind === 'nsfw_image' && findImageFormat(content.head) === undefined) {
      return { ...contentFields, ...toError('UnsupportedImage'), metadata: hashes }
    }
    const { status, signals, metadata, doubts = [] } = await deps.assess(content, options)
    // The signals of a threat do not tell doubts. A revision that clears the threat must know of them.
    const notScanned = status === 'threat' && doubts.length > 0 ? { not_scanned: doubts.join('; ') } : {}
    return { ...contentFields, status, signals, metadata: { ...hashes, ...metadata, ...notScanned } }
  }

  /** A download that fails is a result with status `error`. Throws only when this service fails. */
  async function scanUrl(url: string, options: ScanOptions & DownloadOptions): Promise<FinalResult> {
    const fetched = await deps.download(url, options)
    if ('failure' in fetched) {
      return { ...unknownContentFields, ...toError(fetched.failure), metadata: { reason: fetched.reason } }
    }
    const result = await scanContent(fetched.content, options).finally(fetched.content.release)
    const { credentialUse } = fetched
    if (credentialUse === undefined) return result
    return { ...result, metadata: { ...result.metadata, download_credential: credentialUse } }
  }
}

export type Scanner = ReturnType<typeof makeScanner>

const toError = (reason: string) => ({ status: 'error' as const, signals: [`Error:${reason}`] })

const downloadMs: Record<ScanMode, number> = { sync: 60_000, async: 300_000 }

/** Downloads content within the limits of the kind of scan and from the hosts that the account allows. */
export const makeDownload =
  (deps: {
    fetcher: ContentFetcher
    contents: ContentStore
    /** Null when the account allows every public host. */
    findDownloadHosts(accountId: string): Promise<string[] | null>
    authorize: AuthorizeDownload
  }): Download =>
  async (url, { accountId, kind, mode, signal }) => {
    const [hosts, authorization] = await Promise.all([
      deps.findDownloadHosts(accountId),
      deps.authorize(accountId, url),
    ])
    if (authorization !== undefined && 'failure' in authorization) return authorization
    return deps.fetcher.fetchContent(url, {
      maxBytes: maxContentBytes[kind][mode],
      totalMs: downloadMs[mode],
      signal,
      authorization,
      contents: { newWriter: (options) => deps.contents.newWriter({ ...options, accountId, kind }) },
      ...(hosts === null ? {} : { isHostAllowed: (host: string) => isHostListed(host, hosts) }),
    })
  }

/** `example.com` stands for that host alone, `*.example.com` for every host below it. */
const isHostListed = (host: string, hosts: string[]): boolean =>
  hosts.some((pattern) => (pattern.startsWith('*.') ? host.endsWith(pattern.slice(1)) : host === pattern))

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

import { maxContentBytes, type ScanMode } from '@assay/contract'
import type { Content } from '../content/content.ts'
import { findImageFormat } from '../content/image-format.ts'
import type { Describer } from '../content/media-type.ts'
import type { AuthorizeDownload } from '../downloads/authorize.ts'
import type { ContentFetcher, ContentStore, FetchResult } from '../ports/content-store.ts'
import type { ImageScan } from './image-scan.ts'
import type { MalwareScan } from './malware-scan.ts'
import { type FinalResult, unknownContentFields } from './scan.ts'
import type { Assess, ScanOptions } from './verdict.ts'

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

import type { Content } from '../content/content.ts'
import type { ContentStore } from './content-store.ts'

/** What it ends in when the address yields nothing that can be scanned. Named as in the signals of a result. */
export type FetchFailure = 'DownloadFailed' | 'TooLarge' | 'EmptyContent'

export type FetchResult =
  | { readonly content: Content }
  /** `reason` is a sentence for people; it names no address that the caller did not give. */
  | { readonly failure: FetchFailure; readonly reason: string }

export type FetchRequest = {
  readonly maxBytes: number
  /** For all of it: redirects, names, connections and the content. */
  readonly totalMs: number
  readonly signal: AbortSignal
  readonly contents: ContentStore
  /** Asked for the first address and for every redirect; in lower case, without a dot at the end, IPv6 in brackets. */
  isHostAllowed?(host: string): boolean
}

export type ContentFetcher = {
  /**
   * What strangers do wrong is an outcome. It throws when `signal` is aborted or when we fail ourselves (a disk that is
   * full), so that neither is taken for a download that failed. Whoever gets the content releases it.
   */
  fetchContent(url: string, request: FetchRequest): Promise<FetchResult>
}

import type { ScanKind } from '@assay/contract'
import type { Content, ContentIdentity } from '../content/content.ts'
import type { JobSource } from './job-store.ts'

export type ContentWriter<Finished = Content> = {
  /**
   * Takes over the chunk, whose memory the writer may free. Returns a promise when the storage is behind: wait for it
   * before you write much more. Chunks stay in order even without waiting.
   */
  write(chunk: Buffer): Promise<void> | undefined
  finish(): Promise<Finished>
  /** Removes the content. May be called at any time, also after `finish`. */
  abort(): Promise<void>
}

export type WriterOptions = {
  /** The expected size, when it is known: content that will not fit into memory goes to storage from its first byte. */
  expectedBytes?: number | undefined
  /** The memory that chunks are part of holds nothing else that is needed after `finish`. */
  ownsMemory?: boolean
  /** The account of the scan: accounts share the memory. */
  accountId?: string | null
  /** The kind of the scan: pictures have a part of the memory. */
  kind?: ScanKind
}

export type ContentStore = {
  /** Keeps content in memory while there is room, and writes other content to storage, encrypted. */
  newWriter(options?: WriterOptions): ContentWriter
}

/** Where the content of a job lies: in a row of the database, or in storage. */
export type ContentLocation = Exclude<JobSource, { at: 'url' }>

/**
 * The scan that stored content belongs to. Content is sealed for it and opens for no other. A scan for another node has
 * no account.
 */
export type ContentOwner = { accountId: string | null; scanId: string }

/**
 * Content that a job can refer to. After `persist` it survives a crash and a power cut, and `release` only closes it.
 */
export type JobContent = Content & { persist(owner: ContentOwner): Promise<ContentLocation> }

/** Content of background jobs, from the submission until the scan is completed. */
export type JobContents = {
  newWriter(options?: WriterOptions): ContentWriter<JobContent>
  /** Identifies the store of the content. A process can open the content if its own `storeIds` include the id. */
  toStoreId(location: ContentLocation): string
  storeIds: string[]
  /**
   * Opens persisted content. Releasing it does not remove it. Throws when it is not the content of this owner and
   * identity; a read to the end throws when the hash of the content is another one.
   */
  open(location: ContentLocation, identity: ContentIdentity, owner: ContentOwner): Promise<Content>
  /** Succeeds also when the content does not exist any more. */
  remove(location: { at: 'row' } | { at: 'storage'; key: string }): Promise<void>
  /** Lists the objects of that age, by the clock of the storage. */
  listKeys(ageMs: number): Promise<string[]>
}

/** The storage cannot be reached or refuses access. A later attempt may succeed. Never becomes a verdict. */
export class StorageUnavailable extends Error {}

/** Why a URL yields no content that can be scanned, named as in the signals of a result. */
export type FetchFailure = 'DownloadFailed' | 'TooLarge' | 'EmptyContent'

/** `reason` is a sentence for people. It names no address that the caller did not give. */
export type FetchRefusal = { readonly failure: FetchFailure; readonly reason: string }

/** Whether the server that sent the content got the credential. A server may answer strangers with a login page. */
type CredentialUse = 'sent' | 'not sent after a redirect'

/** `credentialUse` is there if the request had an authorization. */
export type FetchResult = { readonly content: Content; readonly credentialUse?: CredentialUse } | FetchRefusal

/** Headers and request target that make a server give the content. */
export type DownloadAuthorization = {
  readonly headers: Readonly<Record<string, string>>
  /** The path and query to ask for, if they must be in another encoding than in the address. */
  readonly requestTarget?: string
  /** A signature holds for one address. Other headers are sent along redirects that stay on the server. */
  readonly isForOneAddress: boolean
  /** Everyone on the way can read what is sent over http: it may go only to networks that the operator has opened. */
  readonly needsOpenedNetwork: boolean
}

export type FetchRequest = {
  readonly maxBytes: number
  /** The time limit for the whole download: redirects, name resolution, connections and content. */
  readonly totalMs: number
  readonly signal: AbortSignal
  readonly contents: ContentStore
  /** Called for the URL and every redirect, with the host in lower case, without a final dot, IPv6 in brackets. */
  isHostAllowed?(host: string): boolean
  /** Sent to the server of the URL, and to no other one that it redirects to. */
  readonly authorization?: DownloadAuthorization | undefined
}

/** Headers with which a server can tell that content has not changed since an earlier download. */
export type FetchValidators = { etag: string | null; lastModified: string | null }

export type FeedFetcher = ContentFetcher & {
  /**
   * Downloads content unless the server says that it has not changed. An https address never leads to a http one.
   * Otherwise like `fetchContent`.
   */
  fetchIfChanged(
    url: string,
    request: FetchRequest & { readonly validators: FetchValidators },
  ): Promise<
    | { readonly content: Content; readonly validators: FetchValidators; readonly credentialUse?: CredentialUse }
    | { readonly isUnchanged: true }
    | FetchRefusal
  >
}

export type ContentFetcher = {
  /**
   * Returns a failure for every fault of the other side. Throws when `signal` is aborted or this service fails (a full
   * disk), so that neither counts as a failed download. The caller releases the content.
   */
  fetchContent(url: string, request: FetchRequest): Promise<FetchResult>
}

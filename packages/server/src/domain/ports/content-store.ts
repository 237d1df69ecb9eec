import type { Content } from '../content/content.ts'
import type { JobSource } from './job-store.ts'

export type ContentWriter<Finished = Content> = {
  /**
   * The chunk is the writer's from then on, who may give its memory back. A promise when the writer has to catch up: wait
   * for it before much more is written. Chunks stay in order all the same.
   */
  write(chunk: Buffer): Promise<void> | undefined
  finish(): Promise<Finished>
  /** Forgets what was written. May be called at any time, also after `finish`. */
  abort(): Promise<void>
}

export type WriterOptions = {
  /** What is not larger stays in memory, as long as there is room; the store knows what is usual. */
  memoryBytes?: number
  /** About how many bytes will come, where that is known: what will not stay in memory does not begin there. */
  expectedBytes?: number | undefined
  /** When `finish` is called, nobody needs anything else of the memory that chunks are part of. */
  ownsMemory?: boolean
}

export type ContentStore = {
  /** Small content stays in memory; what grows larger goes to storage, encrypted. Clear bytes never reach a disk. */
  newWriter(options?: WriterOptions): ContentWriter
}

/** Content that outlives the process which took it in. */
export type ContentLocation = Exclude<JobSource, { at: 'url' }>

/** `persist` makes it last, beyond a crash and a power cut; from then on `release` only lets go of it. */
export type JobContent = Content & { persist(): Promise<ContentLocation> }

/** Content of background scans, from its submission until the scan is completed. */
export type JobContents = {
  newWriter(options?: Pick<WriterOptions, 'expectedBytes' | 'ownsMemory'>): ContentWriter<JobContent>
  /** Whoever has this place among theirs can open it. */
  toStoreId(kept: ContentLocation): string
  storeIds: string[]
  /** To be released like any other; that does not remove it. */
  open(kept: ContentLocation, known: Pick<Content, 'bytes' | 'sha1' | 'sha256'>): Promise<Content>
  /** May be gone already. */
  remove(kept: ContentLocation): Promise<void>
  /** Of what was stored before that time. */
  listKeys(before: Date): Promise<string[]>
}

/** The storage cannot be reached or refuses us, and that passes: nothing is wrong with the content. Never a verdict. */
export class StorageUnavailable extends Error {}

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

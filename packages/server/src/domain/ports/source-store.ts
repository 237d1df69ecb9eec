import type { FetchValidators } from './content-store.ts'

/** A signature that matched a file of the known-good corpus, and is therefore not used. */
export type HeldSignature = { name: string; file: string }

/** A file of a source that is not used, and why. Its previous version stays in use, if there is one. */
export type RefusedFile = { file: string; reason: string }

/** The settings that an operator gives a source. */
export type SourceSettings = {
  name: string
  url: string
  /** Name of the file that the URL leads to, where the URL does not end in it. */
  fileName: string | null
  /** Hours between two updates; 0 leaves updates to the operator. */
  everyHours: number
  maxMegabytes: number
  /** The SHA-256 of the download in hex, or the URL of a list of checksums. */
  sha256: string | null
  minisignKey: string | null
  publisher: string | null
  licence: string | null
}

export type Source = SourceSettings & {
  /** Signatures in use; null before the first download. */
  signatures: number | null
  held: HeldSignature[]
  refused: RefusedFile[]
  /** Names that the operator has released: they are used although they match known-good files. */
  released: string[]
  /** Known-good files that the signatures in use were tried on. */
  testedFiles: number | null
  /** When the publisher's signatures were last known to be those in use. */
  checkedAt: Date | null
  /** When the signatures in use were downloaded. */
  changedAt: Date | null
  attemptedAt: Date | null
  /** A sentence about why the last attempt failed; null after a success. */
  error: string | null
  createdAt: Date
  /** Seconds since `checkedAt`, or since the source was added, by the clock of the database. */
  ageSeconds: number
}

/** A source that this process updates until the lease ends. */
export type ClaimedSource = Source & { token: string; validators: FetchValidators }

/** A set of files that was tested and may be used. `keep` names files whose previous versions stay. */
export type NewSet = {
  files: NewFile[]
  keep: string[]
  signatures: number
  held: HeldSignature[]
  refused: RefusedFile[]
  testedFiles: number
  validators: FetchValidators
}

/** Sources of signatures. Their files are in the signature store, with the operator's own. */
export type SourceStore = {
  listSources(): Promise<Source[]>
  /** Returns false when there is a source of this name. Its first update is due at once. */
  addSource(source: SourceSettings): Promise<boolean>
  /** Removes the source and its files, and notifies all nodes. Returns false when there is no such source. */
  removeSource(name: string): Promise<boolean>
  /** Lets a held-back signature be used from the next update on, which is due at once. False for an unknown source. */
  releaseSignature(name: string, signature: string): Promise<boolean>
  /** Makes an update due at once. Returns false when there is no such source. */
  makeDue(name: string): Promise<boolean>
  /** Leases the source whose update is due for longest, or the named one at any time. Undefined when there is none. */
  claim(leaseMs: number, name?: string): Promise<ClaimedSource | undefined>
  /** Returns the tokens that are still held. */
  extend(tokens: string[], leaseMs: number): Promise<string[]>
  release(tokens: string[]): Promise<void>
  /**
   * Each of these ends the lease, and returns false when it was lost: then nothing is recorded. `recordSet` replaces all
   * files of the source in one transaction, and throws an `OperatorMistake` when they do not fit.
   */
  recordSet(claimed: ClaimedSource, set: NewSet): Promise<boolean>
  recordUnchanged(claimed: ClaimedSource): Promise<boolean>
  recordFailure(claimed: ClaimedSource, error: string): Promise<boolean>
}

/** A signature or rule file in the database. `sha256` is hexadecimal. `source` is null for a file of the operator. */
export type SharedFile = { name: string; bytes: number; sha256: string; changedAt: Date; source: string | null }

/** A file to save. `read` returns all of its content. */
export type NewFile = { name: string; read(): Promise<Buffer> }

/** The operator's signature and rule files, which every node with engines uses. */
export type SignatureStore = {
  /** All files, by name. */
  listFiles(): Promise<SharedFile[]>
  /** Throws an `OperatorMistake` for a name or a size that `saveFiles` would refuse, before anything is read. */
  requireStorable(files: { name: string; bytes: number }[]): void
  /**
   * Saves all files, or none; replaces files of the same name, and notifies all nodes. `read` is called for one file
   * after the other. Throws an `OperatorMistake` for a name or a size that is not allowed.
   */
  saveFiles(files: NewFile[]): Promise<SharedFile[]>
  /** Returns false when there is no such file. */
  removeFile(name: string): Promise<boolean>
  /** Yields the content in pieces, and ends early when the file has been changed or removed meanwhile. */
  readContent(file: SharedFile): AsyncIterable<Buffer>
}

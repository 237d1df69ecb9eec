/**
 * The bytes that detection reads: Office documents name their type in the first entries, ISO images have their signature
 * at 32 KB, and some file systems within the 2 KB that follow 64 KB.
 */
export const headBytes = 67_584

/** The media type and the hashes of content, as results show them. */
export type Description = { contentType: string; hashes: { hash_sha1: string; hash_sha256: string } }

/** Content that was received completely. It can be read any number of times until its owner releases it. */
export type Content = {
  readonly bytes: number
  /** The first bytes, at most `headBytes`, for type detection. */
  readonly head: Buffer
  /** The hashes of the whole content, in lower-case hex. */
  readonly sha1: string
  readonly sha256: string
  /** Chunks that `read` yields are parts of the content then. Otherwise they belong to the reader, who may free them. */
  readonly isInMemory: boolean
  /** The whole content in one buffer, when it lies in memory that way. */
  readonly whole: Buffer | undefined
  /** The type and the hashes, when the process that received the content has found them already. */
  readonly description?: Description
  /** Whether the content may hold other content, as far as its head tells; set when that is first found out. */
  mayHold?: boolean
  /** Whether the content is text with encoded data, when the process that received it has found that out. */
  readonly mayHoldEncoded?: boolean
  /** Fetches the head, and small content whole, from the process that received the content. The head needs it. */
  load?(): Promise<void>
  /** Lets the process that received the content send it to clamd at this address, and returns the reply of clamd. */
  sendFromOwner?(address: object, signal: AbortSignal): Promise<string>
  /** Yields the clear bytes from `start` up to `end`, by default the whole content. */
  read(start?: number, end?: number): AsyncIterable<Buffer>
  /** Frees the content, which cannot be read afterwards. May be called twice. */
  release(): Promise<void>
}

/**
 * The size and the hashes by which a process recognizes content that another process received, and the description that
 * was recorded then.
 */
export type ContentIdentity = Pick<Content, 'bytes' | 'sha1' | 'sha256' | 'description'>

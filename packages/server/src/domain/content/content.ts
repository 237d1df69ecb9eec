/** Content that was taken in whole. Whoever holds it releases it; until then it can be read any number of times. */
export type Content = {
  readonly bytes: number
  /** The first bytes (at most `headBytes`), for telling what it is. */
  readonly head: Buffer
  /** Of the whole content, in lower-case hex. */
  readonly sha1: string
  readonly sha256: string
  /** All of it, when it is small enough to stay in memory. */
  readonly whole: Buffer | undefined
  /** The clear bytes from `start` up to `end` (the end by default), in order. */
  read(start?: number, end?: number): AsyncIterable<Buffer>
  /** Ends the content: nothing of it can be read afterwards. May be called twice. */
  release(): Promise<void>
}

import type { Content } from '../content/content.ts'

export type ContentWriter = {
  /**
   * The chunk is the writer's from then on, who may give its memory back. A promise when the writer has to catch up: wait
   * for it before the next chunk.
   */
  write(chunk: Buffer): Promise<void> | undefined
  finish(): Promise<Content>
  /** Forgets what was written. May be called at any time, also after `finish`. */
  abort(): Promise<void>
}

export type ContentStore = {
  /** Small content stays in memory; what grows larger goes to storage, encrypted. Clear bytes never reach a disk. */
  newWriter(): ContentWriter
}

import type { Content } from '../content/content.ts'
import type { Doubt } from './scan-engine.ts'

/**
 * The most that one scan unpacks, at all depths together. A single member can be that large, so ClamAV's own limits have
 * this value too: above a lower one it would answer OK for content that it did not read.
 */
export const maxUnpackedBytes = 1000 * 1024 * 1024

/** What may still be unpacked of one scan. Unpacking takes from it, at every depth. */
export type UnpackBudget = { members: number; bytes: number }

export type Unpacker = {
  /**
   * Gives each member of the container to `take`, one after the other; the next begins when `take` is done. Its path is
   * empty where there is no name, as in a file that is only compressed. Returns what could not be opened: empty means that
   * every byte of every member was given.
   */
  unpack(
    content: Content,
    options: {
      take(member: { path: string; bytes: AsyncIterable<Buffer> }): Promise<void>
      budget: UnpackBudget
      signal: AbortSignal
    },
  ): Promise<Doubt[]>
}

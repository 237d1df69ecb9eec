import { hash } from 'node:crypto'
import { newCache } from '../domain/new-cache.ts'

/** Bytes at the beginning of content that are compared. */
const comparedBytes = 4096

type Arriving = { head: Buffer; expectedBytes: number; accountId: string | null | undefined }

/**
 * Recognizes content that has probably come before, by its account, its expected size and its first bytes. The describer
 * knows its SHA-1 by its SHA-256, so that it need not be computed again. `entries` is the number of descriptions that
 * are kept.
 */
export function makeRecentHeads({ entries }: { entries: number }) {
  /** The SHA-256 of the content that began like this; undefined if several contents did, of which none is guessed. */
  const heads = entries === 0 ? undefined : newCache<{ sha256: string | undefined }>(entries)

  return ({ head, expectedBytes, accountId }: Arriving) => {
    const key = `${accountId ?? ''} ${expectedBytes} ${hash('sha1', head.subarray(0, comparedBytes))}`
    return {
      isRepeat: heads?.get(key)?.sha256 !== undefined,
      /** Call it when the content has arrived whole. */
      note(sha256: string) {
        const noted = heads?.get(key)
        heads?.set(key, { sha256: noted === undefined || noted.sha256 === sha256 ? sha256 : undefined })
      },
    }
  }
}

export type RecentHeads = ReturnType<typeof makeRecentHeads>

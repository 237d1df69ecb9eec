import { hash } from 'node:crypto'
import { newCache } from '../domain/new-cache.ts'

/** Bytes at the beginning of content that are compared. */
const comparedBytes = 4096

type Arriving = { head: Buffer; expectedBytes: number; accountId: string | null | undefined }
type Hashes = { sha1: string; sha256: string }

/**
 * Recognizes content that has probably come before, by its account, its expected size and its first bytes. If its
 * SHA-256 is that of the earlier content, its SHA-1 is too, and need not be computed again. `entries` is the number of
 * beginnings that are remembered.
 */
export function makeRecentHeads({ entries }: { entries: number }) {
  /** The hashes of the content that began like this; undefined if several contents did, of which none is expected. */
  const heads = entries === 0 ? undefined : newCache<{ hashes: Hashes | undefined }>(entries)

  return ({ head, expectedBytes, accountId }: Arriving) => {
    const key = `${accountId ?? ''} ${expectedBytes} ${hash('sha1', head.subarray(0, comparedBytes))}`
    return {
      expected: heads?.get(key)?.hashes,
      /** Call it when the content has arrived whole. */
      note({ sha1, sha256 }: Hashes) {
        const noted = heads?.get(key)
        const isFirst = noted === undefined
        heads?.set(key, { hashes: isFirst || noted.hashes?.sha256 === sha256 ? { sha1, sha256 } : undefined })
      },
    }
  }
}

export type RecentHeads = ReturnType<typeof makeRecentHeads>

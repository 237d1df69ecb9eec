import { createHash, hash } from 'node:crypto'
import { setImmediate as waitForTurn } from 'node:timers/promises'
import type { Content } from '../domain/content/content.ts'
import { newCache } from '../domain/new-cache.ts'

/** Bytes at the beginning of content that are compared. */
const comparedBytes = 4096

type Arriving = { head: Buffer; expectedBytes: number; accountId: string | null | undefined }

/**
 * Recognizes content that has probably come before, by its account, its expected size and its first bytes. Its
 * description is known by its SHA-256, so that the SHA-1 need not be computed a second time. `entries` is the number of
 * descriptions that are kept.
 */
export function makeRecentHeads({ entries }: { entries: number }) {
  const heads = newCache<{ isRepeated: boolean }>(Math.max(1, entries))

  return ({ head, expectedBytes, accountId }: Arriving) => {
    const key = `${accountId ?? ''} ${expectedBytes} ${hash('sha1', head.subarray(0, comparedBytes))}`
    const isRepeat = heads.get(key)?.isRepeated === true
    return {
      isRepeat,
      /** Call it when the description of the content is known. */
      note() {
        if (!heads.has(key)) heads.set(key, { isRepeated: true })
      },
      /** Gives content its SHA-1 when it is asked for: the guess was wrong, and is not made again for this beginning. */
      addSha1(content: Content) {
        let sha1: Promise<string> | undefined
        Object.defineProperty(content, 'sha1', {
          enumerable: true,
          get() {
            heads.set(key, { isRepeated: false })
            sha1 ??= computeSha1(content)
            return sha1
          },
        })
      },
    }
  }
}

export type RecentHeads = ReturnType<typeof makeRecentHeads>

/** Hashes piece by piece, so that other requests have their turn in between. */
async function computeSha1(content: Content): Promise<string> {
  const sha1 = createHash('sha1')
  for await (const piece of content.read()) {
    sha1.update(piece)
    await waitForTurn()
  }
  return sha1.digest('hex')
}

import { LRUCache } from 'lru-cache'

/**
 * What was found out about content that was seen before. It counts only under the very engines and signatures that gave
 * it: each entry carries their stamp.
 */
export function makeVersionedCache<T extends object>({ entries }: { entries: number }) {
  const cache = entries === 0 ? undefined : new LRUCache<string, { stamp: string; value: T }>({ max: entries })

  return {
    find(sha256: string, stamp: string): T | undefined {
      const entry = cache?.get(sha256)
      return entry?.stamp === stamp ? entry.value : undefined
    },
    keep(sha256: string, stamp: string, value: T) {
      cache?.set(sha256, { stamp, value })
    },
  }
}

export type VersionedCache<T extends object> = ReturnType<typeof makeVersionedCache<T>>

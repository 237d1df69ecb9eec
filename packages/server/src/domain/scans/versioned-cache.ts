import { LRUCache } from 'lru-cache'

/**
 * What was found out about content that was seen before. It counts only under the very engines and signatures that gave
 * it: each entry carries their version.
 */
export function makeVersionedCache<T extends object>({ entries }: { entries: number }) {
  const cache = entries === 0 ? undefined : new LRUCache<string, { version: string; value: T }>({ max: entries })

  return {
    find(sha256: string, version: string): T | undefined {
      const entry = cache?.get(sha256)
      return entry?.version === version ? entry.value : undefined
    },
    keep(sha256: string, version: string, value: T) {
      cache?.set(sha256, { version, value })
    },
  }
}

export type VersionedCache<T extends object> = ReturnType<typeof makeVersionedCache<T>>

import { LRUCache } from 'lru-cache'
import type { Content } from './content.ts'
import { findMediaType } from './media-type.ts'

/** What is told of content in every result, whatever is found in it. */
export type Description = { contentType: string; hashes: { hash_sha1: string; hash_sha256: string } }

/** SHA-256 decides the rest: content that was seen before is not hashed and looked at again. */
export function makeDescriber({ entries }: { entries: number }) {
  const known = entries === 0 ? undefined : new LRUCache<string, Description>({ max: entries })

  return async (content: Content): Promise<Description> => {
    const found = known?.get(content.sha256)
    if (found !== undefined) return found
    const contentType = await findMediaType(content.head, content.bytes)
    const description = { contentType, hashes: { hash_sha1: content.sha1, hash_sha256: content.sha256 } }
    known?.set(content.sha256, description)
    return description
  }
}

export type Describer = ReturnType<typeof makeDescriber>

import type { Platform } from '../client.ts'
import { findContent } from '../content.ts'
import { UnusableInput } from '../errors.ts'
import { makeFetchTransport } from '../transport/fetch-transport.ts'
import { makeXhrTransport, type Xhr } from '../transport/xhr-transport.ts'

/** Browsers, Workers and whatever else has fetch. */
export const browser: Platform = {
  async openContent(input) {
    const content = findContent(input)
    if (content === undefined)
      throw new UnusableInput('Paths can be read in Node only. Give bytes, a Blob or a stream.')
    return content
  },
  makeTransport(fetch) {
    // It must be called as a method of the global object, and may be replaced later.
    const fetching = makeFetchTransport(fetch ?? ((...args) => globalThis.fetch(...args)), newKey)
    const { XMLHttpRequest } = globalThis as { XMLHttpRequest?: new () => Xhr }
    if (fetch !== undefined || XMLHttpRequest === undefined) return fetching
    return makeXhrTransport(() => new XMLHttpRequest(), fetching)
  },
  newKey,
}

/** randomUUID would need https. */
function newKey(): string {
  const bytes = globalThis.crypto.getRandomValues(new Uint8Array(16))
  return Array.from(bytes, (byte) => byte.toString(16).padStart(2, '0')).join('')
}

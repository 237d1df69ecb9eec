import { type Client, makeClient, type Platform } from './client.ts'
import type { ClientOptions } from './client-options.ts'
import { findContent } from './content.ts'
import { UnusableInput } from './errors.ts'
import { makeFetchTransport } from './transport/fetch-transport.ts'
import { makeXhrTransport, type Xhr } from './transport/xhr-transport.ts'
import { makeVerifyWebhook } from './verify-webhook.ts'

export * from './public.ts'

/** Browsers, Workers and other platforms that have fetch. */
const browser: Platform = {
  async openContent(input) {
    const content = findContent(input)
    if (content === undefined) {
      throw new UnusableInput('Only Node can read paths. Pass bytes, a Blob or a stream.')
    }
    return content
  },
  makeTransport(fetch) {
    // The global fetch must be called as a method of the global object, and a page may replace it later.
    const fetchTransport = makeFetchTransport(fetch ?? ((...args) => globalThis.fetch(...args)), newKey)
    const { XMLHttpRequest } = globalThis as { XMLHttpRequest?: new () => Xhr }
    if (fetch !== undefined || XMLHttpRequest === undefined) return fetchTransport
    return makeXhrTransport(() => new XMLHttpRequest(), fetchTransport)
  },
  newKey,
}

/** A random key of 128 bits. `crypto.randomUUID` exists on https pages only. */
function newKey(): string {
  const bytes = globalThis.crypto.getRandomValues(new Uint8Array(16))
  return Array.from(bytes, (byte) => byte.toString(16).padStart(2, '0')).join('')
}

export const newClient = (options: ClientOptions): Client => makeClient(browser, options)

/** Verifies the signature of a webhook and returns the result in it. Pass the body as the bytes that were received. */
export const verifyWebhook = /* @__PURE__ */ makeVerifyWebhook(() => globalThis.crypto.subtle)

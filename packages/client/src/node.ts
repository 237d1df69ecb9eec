import { randomUUID } from 'node:crypto'
import { type Client, makeClient, type Platform } from './client.ts'
import type { ClientOptions } from './client-options.ts'
import { findContent } from './content.ts'
import { subtle } from './platform/node-crypto.ts'
import { openFile } from './platform/open-file.ts'
import { makeFetchTransport } from './transport/fetch-transport.ts'
import { makeHttpTransport } from './transport/http-transport.ts'
import { makeVerifyWebhook } from './verify-webhook.ts'

export * from './public.ts'

const node: Platform = {
  openContent: async (input) => findContent(input) ?? (await openFile(String(input))),
  makeTransport: (fetch) =>
    fetch === undefined ? makeHttpTransport(randomUUID) : makeFetchTransport(fetch, randomUUID),
  newKey: randomUUID,
}

export const newClient = (options: ClientOptions): Client => makeClient(node, options)

/** Verifies the signature of a webhook and returns the result in it. Pass the body as the bytes that were received. */
export const verifyWebhook = /* @__PURE__ */ makeVerifyWebhook(() => subtle)

import { randomUUID } from 'node:crypto'
import type { Platform } from '../client.ts'
import { findContent } from '../content.ts'
import { makeFetchTransport } from '../transport/fetch-transport.ts'
import { makeHttpTransport } from '../transport/http-transport.ts'
import { openFile } from './open-file.ts'

export const node: Platform = {
  openContent: async (input) => findContent(input) ?? (await openFile(String(input))),
  makeTransport: (fetch) =>
    fetch === undefined ? makeHttpTransport(randomUUID) : makeFetchTransport(fetch, randomUUID),
  newKey: randomUUID,
}

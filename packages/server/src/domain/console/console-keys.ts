import { randomBytes } from 'node:crypto'
import { v7 as newId } from 'uuid'
import { toKeyDigest } from '../accounts/secrets.ts'
import type { ConsoleKeyStore } from '../ports/key-store.ts'

/** Scans from the console run with a key of their own, so that they have a rate window and a line in the usage. */
export const consoleKeyName = 'console'
/** Keys that people have begin with one; what they are called does not count. */
export const consoleKeyPrefix = ''

/** The digest of that key. Nobody ever has the key itself: it is made of a digest that belongs to no text we keep. */
export function makeConsoleKeys({ keys, isTest }: { keys: ConsoleKeyStore; isTest: boolean }) {
  return {
    async getDigest(accountId: string): Promise<string> {
      const found = await keys.findConsoleDigest(accountId)
      if (found !== undefined) return found
      const digest = toKeyDigest(randomBytes(32).toString('hex'))
      await keys.createKey(accountId, {
        id: newId(),
        name: consoleKeyName,
        prefix: consoleKeyPrefix,
        digest,
        expiresAt: null,
        isTest,
      })
      return (await keys.findConsoleDigest(accountId)) ?? digest
    },
  }
}

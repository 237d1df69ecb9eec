import { randomBytes } from 'node:crypto'
import { v7 as newId } from 'uuid'
import { unrestricted } from '../accounts/key-restrictions.ts'
import { toKeyDigest } from '../accounts/secrets.ts'
import type { ConsoleKeyStore } from '../ports/key-store.ts'

/** The name of the key for scans from the console, which have a rate window and a line in the usage of their own. */
export const consoleKeyName = 'console'
/** Marks the key of the console. Every other key has a prefix, whatever its name. */
export const consoleKeyPrefix = ''

/**
 * Creates the key of the console when it is first needed. No person has this key: only the digest of random bytes
 * exists.
 */
export function makeConsoleKeys({ keys, isTest }: { keys: ConsoleKeyStore; isTest: boolean }) {
  return {
    async getDigest(accountId: string): Promise<string> {
      const storedDigest = await keys.findConsoleDigest(accountId)
      if (storedDigest !== undefined) return storedDigest
      const digest = toKeyDigest(randomBytes(32).toString('hex'))
      await keys.createConsoleKey(accountId, {
        id: newId(),
        name: consoleKeyName,
        prefix: consoleKeyPrefix,
        digest,
        expiresAt: null,
        isTest,
        restrictions: unrestricted,
        createdBy: null,
      })
      return (await keys.findConsoleDigest(accountId)) ?? digest
    },
  }
}

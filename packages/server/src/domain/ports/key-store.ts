import type { ApiKey } from '../accounts/account.ts'

export type NewApiKey = {
  id: string
  name: string
  prefix: string
  digest: string
  expiresAt: Date | null
  isTest: boolean
  createdBy: string | null
}

/** The keys with which the console scans for an account. */
export type ConsoleKeyStore = Pick<KeyStore, 'createKey'> & {
  /** Digest of the console's own key of this account, in hex. */
  findConsoleDigest(accountId: string): Promise<string | undefined>
}

export type KeyStore = {
  createKey(accountId: string, key: NewApiKey): Promise<ApiKey>
  listKeys(accountId: string | null): Promise<ApiKey[]>
  /**
   * Lets the key expire at that time unless it expires earlier. Returns false without such a key, or if it is revoked.
   */
  expireKey(accountId: string, id: string, at: Date): Promise<boolean>
  /** Returns false when there is no such key. Revoking twice keeps the first time. */
  revokeKey(id: string): Promise<boolean>
}

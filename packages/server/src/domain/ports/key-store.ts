import type { ApiKey } from '../accounts/account.ts'

export type NewApiKey = {
  id: string
  name: string
  prefix: string
  digest: string
  expiresAt: Date | null
  isTest: boolean
}

/** What the console needs of keys, to scan by itself. */
export type ConsoleKeyStore = Pick<KeyStore, 'createKey'> & {
  /** Of the console's own; in hex. */
  findConsoleDigest(accountId: string): Promise<string | undefined>
}

export type KeyStore = {
  createKey(accountId: string, key: NewApiKey): Promise<ApiKey>
  listKeys(accountId: string | null): Promise<ApiKey[]>
  /** It ends then, unless it would end before. False when the account has no such key, or it is revoked. */
  expireKey(accountId: string, id: string, at: Date): Promise<boolean>
  /** False when there is no such key. Revoking twice keeps the first time. */
  revokeKey(id: string): Promise<boolean>
}

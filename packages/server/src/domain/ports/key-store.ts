import type { ApiKey } from '../accounts/account.ts'

export type NewApiKey = {
  id: string
  name: string
  prefix: string
  digest: string
  expiresAt: Date | null
  isTest: boolean
}

export type KeyStore = {
  createKey(accountId: string, key: NewApiKey): Promise<ApiKey>
  listKeys(accountId: string | null): Promise<ApiKey[]>
  /** False when there is no such key. Revoking twice keeps the first time. */
  revokeKey(id: string): Promise<boolean>
}

import type { DownloadTarget } from '../downloads/target.ts'
import type { CredentialValues, ShownValue } from '../downloads/values.ts'

/** A credential without its values. */
export type DownloadCredential = { id: string; target: DownloadTarget; createdAt: Date; createdBy: string }

export type DownloadCredentialStore = {
  list(accountId: string): Promise<DownloadCredential[]>
  /** Like `list`, with what people may see of the values: null where the master key does not open them. */
  show(accountId: string): Promise<(DownloadCredential & { values: ShownValue[] | null })[]>
  /**
   * Opens the values of a credential; undefined if it was removed meanwhile. Throws when the values were sealed for
   * another account or target, so that a changed row gives them to no other host.
   */
  open(accountId: string, id: string): Promise<CredentialValues | undefined>
  /**
   * Stores a credential in place of one for the same target. Returns `full` when the account has as many as allowed,
   * and `no-account` when there is no such account.
   */
  put(accountId: string, credential: NewCredential): Promise<'added' | 'replaced' | 'full' | 'no-account'>
  /** Returns the target of the removed credential; undefined when the account has no such credential. */
  remove(accountId: string, id: string): Promise<DownloadTarget | undefined>
}

type NewCredential = { id: string; target: DownloadTarget; values: CredentialValues; createdBy: string }

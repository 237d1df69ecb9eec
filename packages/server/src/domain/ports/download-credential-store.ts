import type { DownloadTarget } from '../downloads/target.ts'
import type { CredentialValues, ShownValue } from '../downloads/values.ts'

/** A credential without its values. */
type DownloadCredential = { id: string; target: DownloadTarget }

/** A credential as people see it. `target` and `region` are as they are stored, whether or not they can be used. */
export type ShownCredential = {
  id: string
  target: string
  region: string | null
  /** Null when the credential cannot be used: the master key does not open the values, or the target is not valid. */
  values: ShownValue[] | null
  createdAt: Date
  createdBy: string
}

export type DownloadCredentialStore = {
  /** Lists the credentials whose target is valid. */
  list(accountId: string): Promise<DownloadCredential[]>
  /** Lists all credentials. */
  show(accountId: string): Promise<ShownCredential[]>
  /**
   * Opens the values of a credential; undefined if it was removed meanwhile, `sealed` if the values do not open: they
   * are of another master key, account or target. A changed row gives them to no other host.
   */
  open(accountId: string, id: string): Promise<CredentialValues | 'sealed' | undefined>
  /**
   * Stores a credential. One for the same target is replaced and keeps its id, so that a download which has found it
   * gets the new values. Returns `full` when the account has as many as allowed, and `no-account` when there is none.
   */
  put(
    accountId: string,
    credential: NewCredential,
  ): Promise<{ id: string; isReplaced: boolean } | 'full' | 'no-account'>
  /** Returns the target of the removed credential as it was stored; undefined when the account has no such one. */
  remove(accountId: string, id: string): Promise<string | undefined>
}

type NewCredential = { id: string; target: DownloadTarget; values: CredentialValues; createdBy: string }

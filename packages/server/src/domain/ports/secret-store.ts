import type { CredentialValues, DownloadTarget, ShownValue } from '../downloads/target.ts'

/**
 * The place that a sealed value belongs to: its table and column, or the kind of content, and the ids of its row. A
 * value that is moved anywhere else does not open.
 */
export type Binding = readonly [place: string, ...ids: string[]]

/** Encrypts secrets with the master key before they are stored. */
export type Sealer = {
  seal(clear: Buffer, binding: Binding): Promise<Buffer>
  /** Throws when the value was sealed for something else or with another master key, or was changed. */
  open(sealed: Buffer, binding: Binding): Promise<Buffer>
}

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

type NewCredential = { id: string; target: DownloadTarget; values: CredentialValues; createdBy: string }

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

/** A key that signs receipts, or has signed some. */
export type ReceiptKey = {
  id: string
  /** The 32 bytes of the public key. */
  publicKey: Buffer
  createdAt: Date
  /** Whether new receipts are signed with this key. */
  isCurrent: boolean
}

/** The keys that sign receipts. One of them is current on all nodes; the private keys of others are erased. */
export type ReceiptKeyStore = {
  /** Returns the current key, and creates the first one. The private key is PKCS #8, in DER. */
  getSigningKey(): Promise<{ id: string; privateKey: Buffer }>
  /** All keys, newest first: receipts that were signed with former keys must stay verifiable. */
  listKeys(): Promise<ReceiptKey[]>
  /** Creates a key that signs from now on. Returns its id. */
  rotateKey(): Promise<string>
  /** Removes a key, so that its receipts are not valid any more. Returns false when there is no such key. */
  withdrawKey(id: string): Promise<boolean>
}

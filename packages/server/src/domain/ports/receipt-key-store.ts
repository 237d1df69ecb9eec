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

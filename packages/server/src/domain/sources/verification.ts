import { createPublicKey, type KeyObject, verify } from 'node:crypto'

const forms = [
  // sha256sum: the hash, a blank, a blank or an asterisk, the name.
  /^(?<hash>[0-9a-f]{64})[ \t]+\*?(?<name>.+)$/i,
  // sha256sum --tag, and BSD.
  /^SHA256 ?\((?<name>.+)\) ?= ?(?<hash>[0-9a-f]{64})$/i,
]

/** Finds the SHA-256 of a file in a list such as SHA256SUMS. A list that is one hash without a name is for any file. */
export function findChecksum(list: string, fileName: string): string {
  const lines = list
    .split(/\r?\n/)
    .map((line) => line.trim())
    .filter((line) => line !== '' && !line.startsWith('#'))
  const [only = ''] = lines
  if (lines.length === 1 && /^[0-9a-f]{64}$/i.test(only)) return only.toLowerCase()
  const hashes = lines.flatMap((line) => {
    const found = forms.map((form) => form.exec(line)?.groups).find((groups) => groups !== undefined)
    return found?.name?.split('/').at(-1) === fileName ? [found.hash?.toLowerCase() ?? ''] : []
  })
  const [hash] = hashes
  if (hash === undefined) throw new SourceError(`The list of checksums does not name ${fileName}.`)
  if (new Set(hashes).size > 1) throw new SourceError(`The list of checksums has several hashes of ${fileName}.`)
  return hash
}

const algorithmBytes = 2
const keyIdBytes = 8
const publicKeyBytes = 32
const signatureBytes = 64
/** The head of a public key of Ed25519 in DER. */
const derHead = Buffer.from('302a300506032b6570032100', 'hex')

type MinisignKey = { id: string; key: KeyObject }

/** The content of a signature file of minisign. `isPrehashed` says that the BLAKE2b-512 hash of the content is signed. */
export type MinisignSignature = {
  keyId: string
  isPrehashed: boolean
  signature: Buffer
  trustedComment: string
  commentSignature: Buffer
}

/** Reads a public key as `minisign` prints it. Undefined when it is none. */
export function findMinisignKey(text: string): MinisignKey | undefined {
  const bytes = toBytes(text.trim())
  if (bytes.length !== algorithmBytes + keyIdBytes + publicKeyBytes || readAlgorithm(bytes) !== 'Ed') return undefined
  const der = Buffer.concat([derHead, bytes.subarray(algorithmBytes + keyIdBytes)])
  return { id: readKeyId(bytes), key: createPublicKey({ key: der, format: 'der', type: 'spki' }) }
}

/** Reads a `.minisig` file: an untrusted comment, the signature, a trusted comment and the signature of both. */
export function readMinisig(text: string): MinisignSignature {
  const [untrusted = '', first = '', comment = '', second = ''] = text.split(/\r?\n/)
  const bytes = toBytes(first)
  const commentSignature = toBytes(second)
  const prefix = 'trusted comment: '
  const isValid =
    untrusted.startsWith('untrusted comment:') &&
    comment.startsWith(prefix) &&
    bytes.length === algorithmBytes + keyIdBytes + signatureBytes &&
    commentSignature.length === signatureBytes &&
    ['Ed', 'ED'].includes(readAlgorithm(bytes))
  if (!isValid) throw new SourceError('The minisign signature of the source cannot be read.')
  return {
    keyId: readKeyId(bytes),
    isPrehashed: readAlgorithm(bytes) === 'ED',
    signature: bytes.subarray(algorithmBytes + keyIdBytes),
    trustedComment: comment.slice(prefix.length),
    commentSignature,
  }
}

/** Throws unless the key has signed the content. `signed` is the content, or its BLAKE2b-512 hash if `isPrehashed`. */
export function requireMinisign(publicKey: MinisignKey, found: MinisignSignature, signed: Buffer) {
  if (found.keyId !== publicKey.id) throw new SourceError('The source is signed with another minisign key.')
  const comment = Buffer.concat([found.signature, Buffer.from(found.trustedComment)])
  const isSigned =
    verify(null, signed, publicKey.key, found.signature) && verify(null, comment, publicKey.key, found.commentSignature)
  if (!isSigned) throw new SourceError('The minisign signature does not belong to the downloaded content.')
}

const readAlgorithm = (bytes: Buffer) => bytes.toString('latin1', 0, algorithmBytes)
const readKeyId = (bytes: Buffer) => bytes.toString('hex', algorithmBytes, algorithmBytes + keyIdBytes)

/** Buffer.from skips characters that are no base64; a text that holds any is no key. */
const toBytes = (text: string) => (/^[A-Za-z0-9+/]+={0,2}$/.test(text) ? Buffer.from(text, 'base64') : Buffer.alloc(0))

/** Why a source cannot be updated, as a sentence for the operator. The signatures in use stay. */
export class SourceError extends Error {
  override name = 'SourceError'
}

import { type Dictionary, getValue, isDictionary, type PdfValue } from './pdf-values.ts'

type Cipher = 'none' | 'rc4' | 'aes'

/** Decrypts the streams of a PDF whose user password is empty. */
export type Decryption = {
  /** The bytes of a stream; `filter` names the crypt filter that the stream itself chooses. */
  decrypt(bytes: Buffer, stream: { object: number; generation: number; filter?: string; isEmbedded: boolean }): Buffer
  hasClearMetadata: boolean
}

/** The bytes that fill up a password: an empty one consists of them. */
const padding = Buffer.from('28bf4e5e4e758a4164004e56fffa01082e2e00b6d0683e802f0ca9fe6453697a', 'hex')

/** Only encrypted PDFs need the module, and it would take a tenth of the start of every process. */
const loadCrypto = () => process.getBuiltinModule('node:crypto')

const md5 = (...parts: Uint8Array[]) => loadCrypto().createHash('md5').update(Buffer.concat(parts)).digest()
const sha = (bits: number, ...parts: Uint8Array[]) =>
  loadCrypto().createHash(`sha${bits}`).update(Buffer.concat(parts)).digest()

function toBytes(value: PdfValue): Buffer {
  return Buffer.isBuffer(value) ? value : Buffer.alloc(0)
}

function toNumber(value: PdfValue, otherwise: number): number {
  return typeof value === 'number' ? value : otherwise
}

/**
 * Opens the standard security handler with an empty user password, as every program does before it asks for one.
 * Undefined when a password or a key is needed. Nested values of the dictionary must be direct.
 */
export function openDecryption(dictionary: Dictionary, fileId: Buffer): Decryption | undefined {
  const version = toNumber(getValue(dictionary, 'V'), 0)
  const revision = toNumber(getValue(dictionary, 'R'), 0)
  if (getValue(dictionary, 'Filter') !== 'Standard') return undefined
  const key = version >= 5 ? findLongKey(dictionary, revision) : findKey(dictionary, version, revision, fileId)
  if (key === undefined) return undefined
  const chooseCipher = makeChooser(dictionary, version)
  return {
    hasClearMetadata: getValue(dictionary, 'EncryptMetadata') === false,
    decrypt(bytes, { object, generation, filter, isEmbedded }) {
      const cipher = chooseCipher(filter, isEmbedded)
      if (cipher === 'none') return bytes
      const streamKey = version >= 5 ? key : deriveKey(key, object, generation, cipher)
      return cipher === 'aes' ? decryptAes(streamKey, bytes) : rc4(streamKey, bytes)
    },
  }
}

/** From the fourth version on, crypt filters say which cipher a stream has. */
function makeChooser(dictionary: Dictionary, version: number) {
  const filters = getValue(dictionary, 'CF')
  const usual = getValue(dictionary, 'StmF')
  const embedded = getValue(dictionary, 'EFF') ?? usual
  return (filter: string | undefined, isEmbedded: boolean): Cipher => {
    if (version < 4) return 'rc4'
    const name = filter ?? (isEmbedded ? embedded : usual)
    const chosen = isDictionary(filters) && typeof name === 'string' ? getValue(filters, name) : null
    const method = isDictionary(chosen) ? getValue(chosen, 'CFM') : null
    if (method === 'V2') return 'rc4'
    return method === 'AESV2' || method === 'AESV3' ? 'aes' : 'none'
  }
}

/** The key of RC4 and of AES with 128 bits; undefined when the user password is not empty. */
function findKey(dictionary: Dictionary, version: number, revision: number, fileId: Buffer): Buffer | undefined {
  const bits = toNumber(getValue(dictionary, 'Length'), version === 4 ? 128 : 40)
  const length = revision === 2 ? 5 : Math.min(16, Math.max(5, Math.floor((bits < 40 ? bits * 8 : bits) / 8)))
  const permissions = Buffer.alloc(4)
  permissions.writeInt32LE(toNumber(getValue(dictionary, 'P'), 0) | 0)
  const isClear = revision >= 4 && getValue(dictionary, 'EncryptMetadata') === false
  const owner = toBytes(getValue(dictionary, 'O')).subarray(0, 32)
  const lengths = version === 4 && length !== 16 ? [length, 16] : [length]
  return lengths
    .map((bytes) => {
      let key: Buffer = md5(padding, owner, permissions, fileId, Buffer.alloc(isClear ? 4 : 0, 255)).subarray(0, bytes)
      for (let n = 0; revision >= 3 && n < 50; n++) key = md5(key).subarray(0, bytes)
      return key
    })
    .find((key) => isKeyRight(key, toBytes(getValue(dictionary, 'U')), revision, fileId))
}

function isKeyRight(key: Buffer, user: Buffer, revision: number, fileId: Buffer): boolean {
  if (revision === 2) return rc4(key, padding).equals(user.subarray(0, 32))
  let check: Buffer = md5(padding, fileId)
  for (let n = 0; n < 20; n++) check = rc4(Buffer.from(key.map((byte) => byte ^ n)), check)
  return check.equals(user.subarray(0, 16))
}

/** The key of AES with 256 bits; undefined when the user password is not empty. */
function findLongKey(dictionary: Dictionary, revision: number): Buffer | undefined {
  const user = toBytes(getValue(dictionary, 'U'))
  const packed = toBytes(getValue(dictionary, 'UE')).subarray(0, 32)
  if (user.length < 48 || packed.length < 32) return undefined
  const hash = (salt: Buffer) => (revision >= 6 ? hashRevision6(salt) : sha(256, salt))
  if (!hash(user.subarray(32, 40)).equals(user.subarray(0, 32))) return undefined
  const cipher = loadCrypto()
    .createDecipheriv('aes-256-cbc', hash(user.subarray(40, 48)), Buffer.alloc(16))
    .setAutoPadding(false)
  return Buffer.concat([cipher.update(packed), cipher.final()])
}

/** The hash of an empty password in the sixth revision: at least 64 rounds, until one ends as its number tells. */
function hashRevision6(salt: Buffer): Buffer {
  let key: Buffer = sha(256, salt)
  for (let round = 0; ; round++) {
    const cipher = loadCrypto()
      .createCipheriv('aes-128-cbc', key.subarray(0, 16), key.subarray(16, 32))
      .setAutoPadding(false)
    const mixed = cipher.update(Buffer.concat(Array.from({ length: 64 }, () => key)))
    const remainder = mixed.subarray(0, 16).reduce((sum, byte) => sum + byte, 0) % 3
    key = sha([256, 384, 512][remainder] as number, mixed)
    // The last byte is at most 255, so that the loop ends within 288 rounds.
    if (round >= 63 && (mixed.at(-1) as number) <= round - 31) return key.subarray(0, 32)
  }
}

function deriveKey(key: Buffer, object: number, generation: number, cipher: Cipher): Buffer {
  const number = Buffer.alloc(8)
  number.writeUInt32LE(object >>> 0, 0)
  number.writeUInt32LE(generation >>> 0, 4)
  const salt = Buffer.from(cipher === 'aes' ? 'sAlT' : '')
  return md5(key, number.subarray(0, 3), number.subarray(4, 6), salt).subarray(0, Math.min(16, key.length + 5))
}

/** Decrypts AES in CBC mode, whose first block is the initial vector and whose last bytes are padding. */
function decryptAes(key: Buffer, bytes: Buffer): Buffer {
  const end = bytes.length - (bytes.length % 16)
  if (end < 32) return Buffer.alloc(0)
  const cipher = loadCrypto()
    .createDecipheriv(`aes-${key.length * 8}-cbc`, key, bytes.subarray(0, 16))
    .setAutoPadding(false)
  const clear = Buffer.concat([cipher.update(bytes.subarray(16, end)), cipher.final()])
  const padded = clear.at(-1) as number
  return padded >= 1 && padded <= 16 ? clear.subarray(0, -padded) : clear
}

function rc4(key: Buffer, bytes: Buffer): Buffer {
  const state = Uint8Array.from({ length: 256 }, (_, n) => n)
  for (let n = 0, other = 0; n < 256; n++) {
    other = (other + (state[n] as number) + (key[n % key.length] as number)) & 255
    swap(state, n, other)
  }
  const output = Buffer.allocUnsafe(bytes.length)
  for (let at = 0, n = 0, other = 0; at < bytes.length; at++) {
    n = (n + 1) & 255
    other = (other + (state[n] as number)) & 255
    swap(state, n, other)
    output[at] = (bytes[at] as number) ^ (state[((state[n] as number) + (state[other] as number)) & 255] as number)
  }
  return output
}

function swap(state: Uint8Array, one: number, other: number) {
  const kept = state[one] as number
  state[one] = state[other] as number
  state[other] = kept
}

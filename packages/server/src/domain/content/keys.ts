import { findCmsKind } from './cms-head.ts'
import { findPacketData } from './openpgp-chain.ts'
import { findPacketKind, type Read } from './openpgp-packets.ts'

/** Whether bytes are a key, a certificate or a detached signature, which hold no other content. */
export function isOrdinaryKey(bytes: Buffer): boolean {
  if (bytes.toString('latin1', 0, opensshMark.length) === opensshMark) return true
  const read: Read = (start, end) => bytes.subarray(start, end)
  if (findPacketKind(read, bytes.length) === 'keys') return findPacketData(read, bytes.length) === undefined
  return isWholeValue(bytes) && findCmsKind(bytes) === undefined
}

const opensshMark = 'openssh-key-v1\0'

/** Whether bytes are one value of ASN.1, a sequence or a name, that ends where they do. */
function isWholeValue(bytes: Buffer): boolean {
  const first = bytes[1] ?? 0
  if (bytes[0] !== 0x30 && bytes[0] !== 0x06) return false
  const lengthBytes = first < 0x80 ? 0 : first & 0x7f
  if (lengthBytes > 4 || bytes.length < 2 + lengthBytes) return false
  const length = lengthBytes === 0 ? first : bytes.readUIntBE(2, lengthBytes)
  return 2 + lengthBytes + length === bytes.length
}

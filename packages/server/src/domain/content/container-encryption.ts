import type { Content } from './content.ts'

/**
 * Encryption that hides even the list of members, where unpacking could only fail without a reason; and documents of
 * Office with a password, which ClamAV calls OK. Encrypted members of an open list are met in unpacking.
 */
export async function isEncryptedInside(content: Content, format: string): Promise<boolean> {
  switch (format) {
    case '7z':
      return await hasEncryptedHeader7z(content)
    case 'rar':
      return hasEncryptedHeaderRar4(content.head)
    case 'rar5':
      return hasEncryptedHeaderRar5(content.head)
    case 'ole':
      return await holdsEncryptedPackage(content)
    default:
      return false
  }
}

const aes7z = Buffer.from('06f10701', 'hex')
const maxHeaderBytes = 65_536

/** A packed list names the coders it was packed with; AES among them means that the list itself is encrypted. */
async function hasEncryptedHeader7z(content: Content): Promise<boolean> {
  const { head, bytes } = content
  if (head.length < 32) return false
  const start = 32 + Number(head.readBigUInt64LE(12))
  const length = Number(head.readBigUInt64LE(20))
  if (length > maxHeaderBytes || start + length > bytes) return false
  const header = await collect(content.read(start, start + length))
  return header[0] === 0x17 && header.includes(aes7z)
}

/** The flags of the main header, which follows the signature. */
const hasEncryptedHeaderRar4 = (head: Buffer) =>
  head.length >= 12 && head[9] === 0x73 && (head.readUInt16LE(10) & 0x0080) !== 0

/** An encryption header stands in place of the main one: checksum, a size of at most three bytes, the kind. */
function hasEncryptedHeaderRar5(head: Buffer): boolean {
  let at = 12
  while (at < 15 && ((head[at] ?? 0) & 0x80) !== 0) at++
  return head[at + 1] === 4
}

const packageName = Buffer.from('EncryptedPackage', 'utf16le')

/** The list of streams begins in the sector that the header names, and such a document has only about ten. */
async function holdsEncryptedPackage(content: Content): Promise<boolean> {
  const { head, bytes } = content
  if (head.length < 512) return false
  const sectorBytes = 2 ** Math.min(12, head.readUInt16LE(30))
  const start = (head.readUInt32LE(48) + 1) * sectorBytes
  if (start >= bytes) return false
  const list = await collect(content.read(start, Math.min(bytes, start + 8192)))
  return list.includes(packageName)
}

async function collect(pieces: AsyncIterable<Buffer>): Promise<Buffer> {
  const all: Buffer[] = []
  for await (const piece of pieces) all.push(piece)
  return Buffer.concat(all)
}

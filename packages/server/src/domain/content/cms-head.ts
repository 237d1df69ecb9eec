export type CmsKind = 'content' | 'encrypted' | 'keystore'

/** The names of the kinds of content of CMS and PKCS #7, encoded, with how each is read. */
const rsaData = Buffer.from('2a864886f70d0107', 'hex')
const smime = Buffer.from('2a864886f70d01091001', 'hex')
/** Chinese standards have names of their own for the same structures. */
const sm2 = Buffer.from('2a811ccf5506010402', 'hex')

const byRsa: Record<number, CmsKind> = {
  1: 'content',
  2: 'content',
  3: 'encrypted',
  4: 'encrypted',
  5: 'content',
  6: 'encrypted',
}
/** AuthenticatedData, CompressedData, AuthEnvelopedData and TimestampedData. */
const bySmime: Record<number, CmsKind> = { 2: 'content', 9: 'content', 23: 'encrypted', 31: 'content' }

export const isCompressedType = (name: Buffer) => name.equals(compressedName)
export const isDataType = (name: Buffer) => name.equals(dataName)

const compressedName = Buffer.concat([smime, Buffer.from([9])])
const dataName = Buffer.concat([rsaData, Buffer.from([1])])

/** How content of the type with this encoded name is read; undefined for other types. */
export function findTypeKind(name: Buffer): CmsKind | undefined {
  const last = name[name.length - 1] ?? 0
  const start = name.subarray(0, -1)
  if (start.equals(rsaData) || start.equals(sm2)) return byRsa[last]
  return start.equals(smime) ? bySmime[last] : undefined
}

/** The position of the content of a value, or undefined when its length is none. */
function skipLength(bytes: Buffer, at: number): number | undefined {
  const first = bytes[at]
  if (first === undefined || first > 0x88) return undefined
  return at + 1 + (first & 0x80 ? first & 0x7f : 0)
}

/** Recognises CMS (PKCS #7) and keystores (PKCS #12) by their first values. */
export function findCmsKind(head: Buffer): CmsKind | undefined {
  if (head[0] !== 0x30) return undefined
  const at = skipLength(head, 1)
  if (at === undefined) return undefined
  // A keystore begins with its version, which is 3, and a structure of CMS.
  if (head[at] === 0x02 && head[at + 1] === 1 && head[at + 2] === 3) {
    if (head[at + 3] !== 0x30) return undefined
    const inner = skipLength(head, at + 4)
    return inner !== undefined && readName(head, inner) !== undefined ? 'keystore' : undefined
  }
  return readName(head, at)
}

function readName(head: Buffer, at: number): CmsKind | undefined {
  const length = head[at + 1] ?? 0
  if (head[at] !== 0x06 || length < 9 || length > 11) return undefined
  return findTypeKind(head.subarray(at + 2, at + 2 + length))
}

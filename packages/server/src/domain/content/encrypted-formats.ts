import { isBinary } from './format-row.ts'

/** Whether the head is that of a format whose content nobody can read without a password or a key. */
export function isEncrypted(head: Buffer): boolean {
  const marks = marksByFirstByte[head[0] ?? 0]
  return (marks?.some((mark) => hasMark(head, mark)) ?? false) || laterMarks.some((mark) => hasMark(head, mark))
}

type Mark = { at: number; bytes: Buffer; confirm?: (head: Buffer) => boolean }

const hasMark = (head: Buffer, { at, bytes, confirm }: Mark) =>
  head.length >= at + bytes.length &&
  head[at] === bytes[0] &&
  head[at + 1] === bytes[1] &&
  head.compare(bytes, 0, bytes.length, at, at + bytes.length) === 0 &&
  (confirm === undefined || confirm(head))

const mark = (text: string, at = 0): Mark => ({ at, bytes: Buffer.from(text, 'latin1') })

const marks: Mark[] = [
  // openssl enc, as bytes and in base64.
  mark('Salted__'),
  mark('U2FsdGVkX1'),
  mark('age-encryption.org/v1\n'),
  mark('-----BEGIN AGE ENCRYPTED FILE-----'),
  mark('$ANSIBLE_VAULT;'),
  mark('LUKS\xba\xbe'),
  // The second header of LUKS 2, in an image whose first one is lost.
  mark('SKUL\xba\xbe', 0x4000),
  mark('SKUL\xba\xbe', 0x8000),
  // KeePass 1 and 2.
  mark('\x03\xd9\xa2\x9a\x65\xfb\x4b\xb5'),
  mark('\x03\xd9\xa2\x9a\x66\xfb\x4b\xb5'),
  mark('\x03\xd9\xa2\x9a\x67\xfb\x4b\xb5'),
  // AxCrypt.
  mark('\xc0\xb9\x07\x2e\x4f\x93\xf1\x46\xa0\x15\x79\x2c\xa1\xd9\xe8\x21'),
  // Apple Archive, encrypted.
  { ...mark('AEA1'), confirm: isBinary },
  mark('VimCrypt~'),
  mark('scrypt\x00'),
  { ...mark('ANDROID BACKUP\n'), confirm: isEncryptedBackup },
  { ...mark('AES'), confirm: isAesCrypt },
  { ...mark('\x60\xea'), confirm: isGarbledArj },
  // A disk of QEMU, which names its encryption.
  { ...mark('QFI\xfb\x00\x00\x00'), confirm: (head) => head.length > 36 && head.readUInt32BE(32) !== 0 },
  // BitLocker, and BitLocker To Go on FAT, which has the identifier of the volume instead.
  mark('-FVE-FS-', 3),
  { ...mark('MSWIN4.1', 3), confirm: hasBitLockerId },
]

const laterMarks = marks.filter(({ at }) => at > 0)
/** Marks by their first byte, so that most content is compared only with the few whose mark lies further in. */
const marksByFirstByte: Record<number, Mark[]> = {}
for (const entry of marks) {
  const first = entry.bytes[0] as number
  if (entry.at === 0) marksByFirstByte[first] = [...(marksByFirstByte[first] ?? []), entry]
}

/** AES Crypt has a version behind its letters, and from the second version on a zero and extensions with lengths. */
function isAesCrypt(head: Buffer): boolean {
  const version = head[3] ?? 255
  // The first version has the length of the last block instead of a zero.
  if (version === 0) return (head[4] ?? 255) < 16 && head.length > 64
  if (version > 3 || head[4] !== 0) return false
  if (version === 1) return head.length > 100
  const extension = head.readUInt16BE(Math.min(5, head.length - 2))
  return extension === 0 || head.subarray(7, 7 + extension).includes(0)
}

/** A backup of Android has its version, its compression and its encryption in the first lines. */
function isEncryptedBackup(head: Buffer): boolean {
  return /^ANDROID BACKUP\n\d+\n\d+\nAES/.test(head.toString('latin1', 0, 64))
}

const bitLockerId = Buffer.from('3bd66749292ed84a8399f6a339e3d001', 'hex')
function hasBitLockerId(head: Buffer): boolean {
  return head.subarray(424, 440).equals(bitLockerId)
}

const arjMark = 0xea60
const maxArjHeaders = 1000

/** Whether the header of an ARJ archive, or of a member in the head, says that its data is garbled with a password. */
function isGarbledArj(head: Buffer): boolean {
  let at = 0
  for (let count = 0; count < maxArjHeaders && at + 20 <= head.length; count++) {
    const bytes = head.readUInt16LE(at + 2)
    const type = head[at + 10]
    if (head.readUInt16LE(at) !== arjMark || bytes < 30 || bytes > 2600 || (count === 0) !== (type === 2)) return false
    if (((head[at + 8] as number) & 1) !== 0) return true
    const packedBytes = count === 0 ? 0 : head.readUInt32LE(at + 16)
    at += bytes + 10 + packedBytes
  }
  return false
}

import { crc32 } from 'node:zlib'

/** Reads bytes of the content from the start of a possible container on. */
export type ReadFrom = (start: number, end: number) => Buffer

const rarMarkBytes = 7
const rarBlockBytes = 7
const rarFileBytes = 32
const maxRarBlocks = 100
const fileType = 0x74
const hasDataFlag = 0x8000

/**
 * Whether RAR 4 begins here. The Unarchiver compares no checksum of a header and needs no main header, so a plausible
 * header of a file is enough, which programs that contain the signature do not have behind it.
 */
export function isRar4(head: Buffer, read: ReadFrom): boolean {
  if (head.length < 20) return false
  const length = head.readUInt16LE(12)
  const isMain = length >= 13 && length <= 57 && (crc32(head.subarray(9, 7 + length)) & 0xffff) === head.readUInt16LE(7)
  return isMain || hasRarFile(read)
}

function hasRarFile(read: ReadFrom): boolean {
  let at = rarMarkBytes
  for (let count = 0; count < maxRarBlocks; count++) {
    const block = read(at, at + rarFileBytes)
    if (block.length < rarFileBytes) return false
    const [flags, length] = [block.readUInt16LE(3), block.readUInt16LE(5)]
    if (block[2] === fileType) {
      const [method = 0, nameBytes] = [block[25], block.readUInt16LE(26)]
      const hasName = nameBytes > 0 && nameBytes + rarFileBytes <= length
      if ((flags & hasDataFlag) !== 0 && method >= 0x30 && method <= 0x35 && hasName) return true
    }
    if (length < rarBlockBytes) return false
    at += length + ((flags & hasDataFlag) === 0 ? 0 : block.readUInt32LE(7))
  }
  return false
}

export function isRar5(head: Buffer): boolean {
  if (head.length < 20) return false
  const length = head[12] ?? 0
  return length > 0 && length < 50 && crc32(head.subarray(12, 13 + length)) === head.readUInt32LE(8)
}

/** The end of each cpio. Its binary forms have a signature of two bytes only. */
export const cpioEnd = Buffer.from('TRAILER!!!\0', 'latin1')

/** The places of the length of the name, and of the name. */
const cpioForms = [
  { mark: /^07070[12]/, headBytes: 110, nameAt: 94, digits: 8, base: 16 },
  { mark: /^070707/, headBytes: 76, nameAt: 59, digits: 6, base: 8 },
]
const maxNameBytes = 4096

/** The other fields are not looked at: GNU cpio takes what is no digit there for zero. */
export function isTextCpio(head: Buffer): boolean {
  const text = head.toString('latin1', 0, 110)
  const form = cpioForms.find(({ mark }) => mark.test(text))
  if (form === undefined) return false
  const nameBytes = Number.parseInt(text.slice(form.nameAt, form.nameAt + form.digits), form.base)
  return isCpioName(head.subarray(form.headBytes, form.headBytes + nameBytes), nameBytes)
}

const binaryHeadBytes = 26
/** Types of files: pipe, device, folder, file, link, socket. */
const fileTypes = new Set([1, 2, 4, 6, 8, 10, 12])

export function isBinaryCpio(head: Buffer): boolean {
  if (head.length < binaryHeadBytes) return false
  const isLittle = head[0] === 0xc7
  const readWord = (at: number) => (isLittle ? head.readUInt16LE(at) : head.readUInt16BE(at))
  const nameBytes = readWord(20)
  const isMode = fileTypes.has(readWord(6) >> 12) || readWord(6) === 0
  return isMode && isCpioName(head.subarray(binaryHeadBytes, binaryHeadBytes + nameBytes), nameBytes)
}

/** A longer name than the head is none. */
const isCpioName = (name: Buffer, bytes: number) =>
  bytes > 1 && bytes <= maxNameBytes && name.length === bytes && name.indexOf(0) === bytes - 1

/** Levels of headers of LHA: the first two have a checksum, the others a chain of further fields. */
const lzhLevelAt = 20
const minLzhBytes = 26

/** Whether a header of LHA or PMarc begins here. Programs that extract themselves carry it, and LHa skips any bytes. */
export function isLzh(head: Buffer): boolean {
  const method = head.toString('latin1', 2, 7)
  if (head.length < minLzhBytes || !/^-(?:lh[0-9dx]|lz[45s]|pm[0-2s])-$/.test(method)) return false
  const level = head[lzhLevelAt] as number
  if (level < 2) return hasLzhSum(head)
  const start = head.readUInt16LE(0)
  return level === 2 ? hasLzhFields(head, start) : level === 3 && start === 4 && head.readUInt32LE(24) < 2 ** 20
}

/** Whether the bytes behind the length and the checksum add up to it, a name among them. */
function hasLzhSum(head: Buffer): boolean {
  const end = 2 + (head[0] as number)
  const nameEnd = 22 + (head[21] as number)
  if (nameEnd > end || end > head.length) return false
  const sum = head.subarray(2, end).reduce((total, byte) => total + byte, 0)
  return sum % 256 === head[1]
}

/** Whether the fields of a header fill it. One byte may follow them. */
function hasLzhFields(head: Buffer, length: number): boolean {
  let at = 24
  for (let bytes = head.readUInt16LE(at); bytes > 0; bytes = head.readUInt16LE(at)) {
    at += bytes
    if (bytes < 3 || at + 2 > Math.min(length, head.length)) return false
  }
  return length - at === 2 || length - at === 3
}

const cabHeadBytes = 36
/** Programs take a cabinet that ends so far behind the content. */
const maxCabOverhang = 32

/**
 * Whether the head of a cabinet begins here that is none for 7-Zip, because of its version or of fields without a
 * meaning. Cabextract and The Unarchiver do not compare these: the places in the head must lie in the content.
 */
export function isOddCab(head: Buffer, read: ReadFrom): boolean {
  if (head.length < cabHeadBytes) return false
  const isUsual = head.readUInt32LE(4) === 0 && head[24] === 3 && head[25] === 1
  const [bytes, filesAt] = [head.readUInt32LE(8), head.readUInt32LE(16)]
  const [folders, files] = [head.readUInt16LE(26), head.readUInt16LE(28)]
  if (isUsual || folders === 0 || files === 0 || filesAt < cabHeadBytes || filesAt >= bytes) return false
  const last = bytes - maxCabOverhang - 1
  return last < cabHeadBytes || read(last, last + 1).length === 1
}

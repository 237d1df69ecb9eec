export const tarBlockBytes = 512

/** Whether a block is the header of a tar member: its checksum, over signed or unsigned bytes, is right. */
export function hasTarChecksum(block: Buffer): boolean {
  if (block.length < tarBlockBytes) return false
  const stored = readChecksum(block)
  if (stored === undefined) return false
  let sum = 8 * 0x20
  let negative = 0
  for (let at = 0; at < tarBlockBytes; at++) {
    if (at === 148) at = 156
    const byte = block[at] ?? 0
    sum += byte
    if (byte > 127) negative += 256
  }
  return stored === sum || stored === sum - negative
}

/** Reads blanks, octal digits and the end of the field. Most other blocks have none of them there. */
function readChecksum(block: Buffer): number | undefined {
  let at = 148
  while (at < 156 && (block[at] === 0x20 || block[at] === 0)) at++
  const start = at
  let value = 0
  for (; at < 156; at++) {
    const digit = (block[at] ?? 0) - 0x30
    if (digit < 0 || digit > 7) break
    value = value * 8 + digit
  }
  // The blanks that stand for the field in the sum make at least three digits.
  return at - start < 3 ? undefined : value
}

/**
 * Whether content begins with a tar header, with or without the signature that newer forms have. Other content may have
 * the right checksum by chance, so the field of the size must hold a number too.
 */
function isTarHead(head: Buffer): boolean {
  return head[0] !== 0 && hasTarChecksum(head) && isNumber(head.subarray(124, 136))
}

/**
 * Whether one of the blocks in the head is a header without a signature: GNU tar skips what stands before it. Headers
 * with a signature are found in any content, wherever they stand.
 */
export function hasOldTarHeader(head: Buffer): boolean {
  for (let at = 0; at + tarBlockBytes <= head.length; at += tarBlockBytes) {
    // Most blocks have no digit in the middle of the checksum.
    if (((head[at + 151] as number) ^ 0x30) > 7) continue
    const block = head.subarray(at, at + tarBlockBytes)
    if (isTarHead(block) && !hasTarSignature(block)) return true
  }
  return false
}

export const hasTarSignature = (block: Buffer) => block.toString('latin1', 257, 262) === 'ustar'

/** Digits and what may stand around them, or a binary number. */
function isNumber(field: Buffer): boolean {
  const first = field[0] ?? 0
  return first === 0x80 || first === 0xff || /^[-+ \0]*[0-7o_]*(?:[ \0]|$)/i.test(field.toString('latin1'))
}

/** Lengths in the header of a MacBinary file, which holds both forks of a file. */
export type MacBinary = {
  name: string
  dataBytes: number
  resourceBytes: number
  extraBytes: number
  isCertain: boolean
}

export const macBinaryBytes = 128

/**
 * Reads the header of MacBinary, which has no signature. Its later versions have a checksum; of the first one, the
 * length of the content must prove it.
 */
export function readMacBinary(head: Buffer): MacBinary | undefined {
  if (head.length < macBinaryBytes || head[0] !== 0 || head[74] !== 0 || head[82] !== 0) return undefined
  const nameBytes = head[1] ?? 0
  const name = head.subarray(2, 2 + nameBytes)
  if (nameBytes < 1 || nameBytes > 63 || name.some((byte) => byte < 0x20)) return undefined
  const isCertain = head.readUInt16BE(124) === sumUp(head.subarray(0, 124))
  const isFirstVersion = head.subarray(101, 126).every((byte) => byte === 0)
  if (!isCertain && !isFirstVersion) return undefined
  return {
    name: name.toString('latin1'),
    dataBytes: head.readUInt32BE(83),
    resourceBytes: head.readUInt32BE(87),
    extraBytes: isCertain ? head.readUInt16BE(120) : 0,
    isCertain,
  }
}

/** CRC-16 with the polynomial 0x1021. */
function sumUp(bytes: Buffer): number {
  let sum = 0
  for (const byte of bytes) {
    sum ^= byte << 8
    for (let bit = 0; bit < 8; bit++) sum = ((sum << 1) ^ ((sum & 0x8000) === 0 ? 0 : 0x1021)) & 0xffff
  }
  return sum
}

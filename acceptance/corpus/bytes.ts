/** Little-endian numbers, as most archive formats write them. */
export const u16 = (value: number) => Buffer.of(value & 255, (value >>> 8) & 255)
export const u32 = (value: number) => Buffer.concat([u16(value & 0xffff), u16(value >>> 16)])
export const u64 = (value: number) => Buffer.concat([u32(value % 2 ** 32), u32(Math.floor(value / 2 ** 32))])
/** A number with the most significant byte first. */
export const u64be = (value: number) => u64(value).reverse()

/** Text of a harmless member, and of files that stand before archives. */
export const plainText = Buffer.from('An ordinary text of a few words.\n')

/** About 100 KB of text. */
export const longText = Buffer.from(
  Array.from({ length: 2_000 }, (_, n) => `Line ${n} of an ordinary text of some length.\n`).join(''),
)

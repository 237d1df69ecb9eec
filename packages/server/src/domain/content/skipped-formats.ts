/**
 * Formats that ClamAV takes for harmless by their first bytes and does not scan at all, as its built-in list of file
 * types says (CL_TYPE_IGNORED): RealMedia, MP3, Ogg, logs of SIP, data of another scanner, SQLite.
 */
const skippedHeads = [
  '.RMF',
  'ID3',
  'OggS',
  '\xff\xfb\x90',
  'SIP-HIT (SIP/H',
  'SYMC\x01\x00',
  'SQLite format 3\x00',
  '\x37\x7f\x06\x82\x00\x2d\xe2\x18',
  '\x37\x7f\x06\x83\x00\x2d\xe2\x18',
  '\xd9\xd5\x05\xf9\x20\xa1\x63\xd7',
].map((text) => Buffer.from(text, 'latin1'))

/** A picture of a PDF, which ClamAV skips when this stands within its first bytes. */
const skippedImage = Buffer.from(`/RGB\nID\n${'\xff'.repeat(24)}`, 'latin1')
const maxImageAt = 128

/**
 * The number of bytes without which ClamAV scans the content that begins with this head; undefined when it scans the
 * content as it is.
 */
export function countSkippedBytes(head: Buffer): number | undefined {
  const first = head[0]
  if (skippedHeads.some((mark) => mark[0] === first && head.subarray(0, mark.length).equals(mark))) return 1
  const imageAt = head.subarray(0, maxImageAt + skippedImage.length).indexOf(skippedImage)
  return imageAt === -1 ? undefined : imageAt + skippedImage.length
}

/**
 * Whether content with this head may be a zlib stream. The two bytes are no signature: text may begin with them, and
 * only a stream that decodes to its checksum is one.
 */
export function isZlibHead([method = 0, flags = 0]: Buffer): boolean {
  const isDeflate = (method & 0x0f) === 8 && method >> 4 <= 7
  const hasDictionary = (flags & 0x20) !== 0
  return isDeflate && !hasDictionary && (method * 256 + flags) % 31 === 0
}

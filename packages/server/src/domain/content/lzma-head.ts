import { headBytes } from './content.ts'
import { decodeLzma, lzmaHeadBytes } from './lzma-decoder.ts'

const maxProperties = 9 * 5 * 5
const unknownSize = 0xffff_ffff_ffff_ffffn
const maxSymbols = 20_000
const windowBytes = 2 ** 17
/** Other content than LZMA ends in an impossible distance long before so many bytes that are not zero. */
const enoughBytes = 32
/** A stream that fills the content exactly needs fewer of them. */
const enoughBytesAlone = 8

/**
 * Whether content with this head is a `.lzma` file, which has no signature. The few heads that may be one are tried:
 * the first symbols must decode.
 */
export function isLzmaStream(head: Buffer): boolean {
  return isPossible(head) && canDecode(head)
}

/** Properties and a size, the zero before every stream, and a first symbol that is a literal. */
function isPossible(head: Buffer): boolean {
  if ((head[0] ?? 0xff) >= maxProperties || head.length < 18 || head[13] !== 0 || (head[14] ?? 0xff) >= 0x80)
    return false
  const size = head.readBigUInt64LE(5)
  return size === unknownSize || (size > 0n && size < 1n << 40n)
}

/** Tells streams by the bytes that decode. Zeros decode to zeros in every case, so they do not count. */
function canDecode(head: Buffer): boolean {
  let at = lzmaHeadBytes
  let counted = 0
  function nextByte(): number {
    const byte = head[at++]
    if (byte !== undefined && byte !== 0) counted++
    return byte ?? -1
  }
  const decoding = decodeLzma(head, { nextByte, maxWindowBytes: windowBytes, maxSymbols })
  let step = decoding.next()
  while (step.done !== true) step = decoding.next()
  if (step.value === 'damaged') return counted > 4 * enoughBytes
  const isWhole = head.length < headBytes && head.subarray(at).every((byte) => byte === 0)
  return counted >= (isWhole && step.value === 'complete' ? enoughBytesAlone : enoughBytes)
}

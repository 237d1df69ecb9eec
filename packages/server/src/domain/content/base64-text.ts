/** Fewer characters hold no file. */
export const minBase64Chars = 64
/** Lines of base64 have at least as many characters, or all have the same number. */
export const minLineChars = 32
/** Line ends, quotes, and words with which lines of base64 begin or end, such as `echo` and `>> file`. */
const maxGapBytes = 300
/** A line of fewer than `minLineChars`, with an indent and quotes. */
const maxShortLineBytes = 120
/** Fewer signs join strings. */
const minWordChars = 4

const digit = 1
const upper = 2
const lower = 4
/** The signs of both alphabets, and the backslash that some languages write in front of a slash or for a line end. */
export const sign = 8

/** The kind of each byte, 0 for those that base64 does not have. */
export const base64Kinds = new Uint8Array(256)
setKind(base64Kinds, '0123456789', digit)
setKind(base64Kinds, 'ABCDEFGHIJKLMNOPQRSTUVWXYZ', upper)
setKind(base64Kinds, 'abcdefghijklmnopqrstuvwxyz', lower)
setKind(base64Kinds, '+/-_\\', sign)

export function setKind(kinds: Uint8Array, chars: string, kind: number) {
  for (const char of chars) kinds[char.charCodeAt(0)] = kind
}

const isLetter = (byte: number | undefined) => byte !== undefined && base64Kinds[byte] !== 0

/** The end of a word of the characters of base64. */
export function findEnd(text: Buffer, from: number): number {
  let end = from
  while (isLetter(text[end])) end++
  return end
}

/** The kinds of the bytes of a range, as bits. */
export function findKinds(text: Buffer, start = 0, end = text.length): number {
  let found = 0
  for (let at = start; at < end; at++) found |= base64Kinds[text[at] as number] as number
  return found
}

/** Hexadecimal digits, numbers and words do not have all kinds of characters. */
export const hasBase64Kinds = (found: number) =>
  (found & upper) !== 0 && (found & lower) !== 0 && (found & (digit | sign)) !== 0

/** Base32 has a length of its own: hashes have up to 103 of its characters. */
export const minBase32Chars = 104

/** Letters of one case, and digits. Hexadecimal digits are told apart where that matters. */
export const hasBase32Kinds = (found: number) => found === (upper | digit) || found === (lower | digit)

/** Whether characters of these kinds are enough for base64 or base32. */
export const hasEncodedKinds = (found: number, chars: number) =>
  (chars >= minBase64Chars && hasBase64Kinds(found)) || (chars >= minBase32Chars && hasBase32Kinds(found))

/** Whether a word of base32 is long enough, or has others near it. One shorter word may be the last. */
export function continuesLikeBase32(text: Buffer, start: number, end: number): boolean {
  let found = 0
  let chars = 0
  const stop = Math.min(text.length, end + maxGapBytes)
  for (let at = start; at < stop; at++) {
    if (!isLetter(text[at])) continue
    const next = findEnd(text, at)
    const kinds = findKinds(text, at, next) | found
    const isFitting = !hasBase64Kinds(kinds | digit) && (kinds & sign) === 0
    if (isFitting && hasEncodedKinds(kinds, chars + next - at)) return true
    if (!isFitting && at === start) return false
    if (isFitting && next - at >= minLineChars) {
      chars += next - at
      found = kinds
    }
    at = next
  }
  return false
}

/** Whether a line of base64 is long enough, or has others near it. One shorter line may be the last. */
export function continuesLikeBase64(text: Buffer, start: number, end: number): boolean {
  if (isHash(text, start, end)) return false
  let chars = end - start
  let found = findKinds(text, start, end)
  if (chars >= minBase64Chars && hasBase64Kinds(found)) return true
  const stop = Math.min(text.length, end + maxGapBytes)
  for (let at = end; at < stop; at++) {
    if (!isLetter(text[at])) continue
    const next = findEnd(text, at)
    const isHashNext = isHash(text, at, next)
    if (!isHashNext) {
      found |= findKinds(text, at, next)
      if (chars + next - at >= minBase64Chars && hasBase64Kinds(found)) return true
      if (next - at >= minLineChars) chars += next - at
    }
    at = next
  }
  return false
}

/** `sha512-` and its 88 characters. */
export const longestHash = 99

/** The hash of a file, as lists of packages have it for each package. */
export const isHash = (text: Buffer, start: number, end: number) =>
  end - start <= longestHash && /^sha\d{3}-/.test(text.toString('latin1', start, start + 7))

/** Searches lines that follow each other for base64 in words of one length, one in each line but for a shorter last one. */
export function newShortLineSearch() {
  let width = 0
  let chars = 0
  let found = 0
  return {
    /** Whether the last line may have others behind it. */
    isOpen: () => width > 0,
    take(text: Buffer, start: number, end: number): boolean {
      const word = findOnlyWord(text, start, end)
      const length = word === undefined ? 0 : word.end - word.start
      if (word === undefined) width = 0
      if (word === undefined || length === 0) return false
      if (length > width) {
        width = length
        chars = 0
        found = 0
      }
      chars += length
      const before = found
      found |= findKinds(text, word.start, word.end)
      // A shorter line may be a word of other text, which makes a list of numbers look like base32.
      if (hasEncodedKinds(found, chars) && (length === width || hasBase64Kinds(found) || hasBase32Kinds(before)))
        return true
      if (length < width) {
        width = length
        chars = length
      }
      return false
    },
  }
}

/**
 * The characters of base64 in a line that has them in one place only, besides signs that may join strings; an empty
 * place in a line that has none. Long lines are left to the search for long words.
 */
export function findOnlyWord(text: Buffer, lineStart: number, lineEnd: number) {
  if (lineEnd - lineStart > maxShortLineBytes) return undefined
  let start = lineStart
  let end = lineStart
  let isWord = false
  for (let at = lineStart; at < lineEnd; at++) {
    let found = base64Kinds[text[at] as number] as number
    if (found === 0) continue
    const first = at
    for (let kind = found; at < lineEnd && kind !== 0; kind = base64Kinds[text[++at] as number] as number) found |= kind
    const isJoint = found === sign && at - first < minWordChars
    if (isWord && !isJoint) return undefined
    if (isWord) continue
    start = first
    end = at
    isWord = !isJoint
  }
  return { start, end }
}

/** Hashes have up to 64 bytes. */
export const minNumbers = 65
/** The characters of the shortest list: digits, and a sign between each two. */
const minListChars = 2 * minNumbers - 1
/** `0x58`, `-117`. */
const maxNumberChars = 4

const digit = 1
const separator = 2
const minus = 0x2d
const letterX = 0x78

/** The kind of each byte of a list of numbers. A backslash continues a line. */
export const numberKinds = new Uint8Array(256)
for (const char of '0123456789abcdefABCDEFxX-') numberKinds[char.charCodeAt(0)] = digit
for (const char of ', \t\r\n\\') numberKinds[char.charCodeAt(0)] = separator

/**
 * Whether a text may hold bytes as a list of numbers, such as `88, 53` or `0x58, 0x35`. A list that begins in these
 * characters reaches the last of them: most text has another sign there, so that few characters are read.
 */
export function hasNumberList(text: string): boolean {
  for (let start = 0; start + minListChars <= text.length; ) {
    let last = start + minListChars - 1
    let chars = 0
    for (; last >= start; last--) {
      const kind = numberKinds[text.charCodeAt(last)]
      if (kind === 0) break
      chars = kind === digit ? chars + 1 : 0
      if (chars >= maxNumberChars && !isLongNumber(text, last, chars)) break
    }
    if (last < start) {
      const end = countNumbers(text, start)
      if (end === found) return true
      last = Math.max(start, end)
    }
    start = last + 1
  }
  return false
}

/** Numbers of four characters have a sign or begin with `0x`. */
const isLongNumber = (text: string, start: number, chars: number) =>
  chars === maxNumberChars && (text.charCodeAt(start) === minus || (text.charCodeAt(start + 1) | 0x20) === letterX)

const found = Number.POSITIVE_INFINITY

/** The place behind a list that is too short, or `found`. */
function countNumbers(text: string, start: number): number {
  let numbers = 0
  let chars = 0
  let at = start
  for (; at < text.length; at++) {
    const kind = numberKinds[text.charCodeAt(at)]
    if (kind === 0) break
    chars = kind === digit ? chars + 1 : 0
    if (chars >= maxNumberChars && !isLongNumber(text, at - chars + 1, chars)) break
    if (chars === 1 && ++numbers >= minNumbers) return found
  }
  return at
}

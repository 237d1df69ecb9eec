/** Hashes have up to 128 digits, and fill whole lists. */
export const minHexDigits = 130
/** A line that ends with fewer digits does not begin a file. */
const minFirstDigits = 32
/** The digits of the place in front of a line of a dump by hexdump or od. */
const minPlaceDigits = 6
/** Fewer bytes behind a number may be a time. */
const minDumpGroups = 4

/** 1 for the bytes that are digits. */
export const isHexDigit = new Uint8Array(256)
for (const char of '0123456789abcdefABCDEF') isHexDigit[char.charCodeAt(0)] = 1

const blank = 0x20
const tab = 0x09
const colon = 0x3a
const carriageReturn = 0x0d
const backslash = 0x5c
const zero = 0x30
const lowerCase = 0x20
const letterX = 0x78
const isBlank = (byte: number | undefined) => byte === blank || byte === tab

/** Whether a word has hexadecimal digits alone, behind the sign that some languages write in front of them. */
export const isHexWord = (text: Buffer, start: number, end: number): boolean =>
  findHexEnd(text, skipSign(text, start)) >= end

/** Skips `0x`, or `x` behind backslashes, as dumps of databases have it in front of a value. */
function skipSign(text: Buffer, start: number): number {
  let at = start
  while (text[at] === backslash) at++
  const isMarked = at > start || text[at++] === zero
  return isMarked && ((text[at] as number) | lowerCase) === letterX ? at + 1 : start
}

/** Searches lines that follow each other for hexadecimal digits, alone, in groups, or as a dump of a file. */
export function newHexLineSearch() {
  let digits = 0
  return {
    /** Whether the last line may have others behind it. */
    isOpen: () => digits > 0,
    take(text: Buffer, start: number, end: number): boolean {
      const found = countDigits(text, start, end)
      const sum = digits + Math.abs(found)
      // Other text may stand in front of the first digits and behind the last ones.
      digits = found > 0 ? sum : countLastDigits(text, start, end)
      return sum >= minHexDigits
    },
  }
}

/**
 * The digits that a line begins with, in groups of bytes; as a negative number if other text follows. A dump notes a
 * place in front of them and has letters behind them: xxd with a colon behind the place, hexdump and od without.
 */
function countDigits(text: Buffer, start: number, end: number): number {
  let count = 0
  let groups = 0
  let isDump = false
  let isPlaced = false
  for (let at = skipBlanks(text, start); at < end; at = skipBlanks(text, at)) {
    const groupEnd = findHexEnd(text, at)
    const isGroup = groupEnd > at && (groupEnd - at) % 2 === 0
    const isFirst = count === 0 && !isDump && !isPlaced
    if (isFirst && groupEnd > at && text[groupEnd] === colon) {
      isDump = true
      at = groupEnd + 1
    } else if (isFirst && groupEnd - at >= minPlaceDigits && isPlace(text, groupEnd)) {
      isPlaced = true
      if (isGroup) count += groupEnd - at
      at = groupEnd
    } else if (isGroup) {
      count += groupEnd - at
      groups++
      at = groupEnd
    } else if (isDump || (isPlaced && groups >= minDumpGroups) || text[at] === carriageReturn) return count
    else return -count
  }
  return count
}

/** Whether a byte follows a place, behind blanks. */
function isPlace(text: Buffer, placeEnd: number): boolean {
  const byte = skipBlanks(text, placeEnd)
  return byte > placeEnd && findHexEnd(text, byte) === byte + 2
}

function countLastDigits(text: Buffer, start: number, end: number): number {
  let first = end
  while (first > start && isHexDigit[text[first - 1] as number] === 1) first--
  return end - first >= minFirstDigits ? end - first : 0
}

function skipBlanks(text: Buffer, from: number): number {
  let at = from
  while (isBlank(text[at])) at++
  return at
}

function findHexEnd(text: Buffer, from: number): number {
  let end = from
  while (end < text.length && isHexDigit[text[end] as number] === 1) end++
  return end
}

/** Hashes have up to 64 bytes. */
export const minNumbers = 65
/** The characters of the shortest list: digits, and a sign between each two. */
const minListChars = 2 * minNumbers - 1
/** `0x58`, `-117`. */
const maxNumberChars = 4

const character = 1
const separator = 2
const minus = 0x2d

/** The kind of each byte of a list of numbers. A backslash continues a line. */
export const numberKinds = new Uint8Array(256)
for (const char of '0123456789abcdefABCDEFxX-') numberKinds[char.charCodeAt(0)] = character
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
      chars = kind === character ? chars + 1 : 0
      if (chars >= maxNumberChars && !isLongNumber(text, last, chars)) break
    }
    if (last < start) {
      const end = countNumbers(text, start)
      if (end === foundList) return true
      last = Math.max(start, end)
    }
    start = last + 1
  }
  return false
}

/** Numbers of four characters have a sign or begin with `0x`. */
const isLongNumber = (text: string, start: number, chars: number) =>
  chars === maxNumberChars && (text.charCodeAt(start) === minus || (text.charCodeAt(start + 1) | 0x20) === letterX)

/** In place of a position. */
const foundList = Number.POSITIVE_INFINITY

/** The place behind a list that is too short, or `foundList`. */
function countNumbers(text: string, start: number): number {
  let numbers = 0
  let chars = 0
  let at = start
  for (; at < text.length; at++) {
    const kind = numberKinds[text.charCodeAt(at)]
    if (kind === 0) break
    chars = kind === character ? chars + 1 : 0
    if (chars >= maxNumberChars && !isLongNumber(text, at - chars + 1, chars)) break
    if (chars === 1 && ++numbers >= minNumbers) return foundList
  }
  return at
}

/** How a decoder of base64 treats characters that do not belong there. Programs differ in each of these. */
export type Base64Rule = {
  onJunk: 'skip' | 'stop'
  /** `fill` stops at a pad that completes four characters, and ignores others. */
  onPad: 'stop' | 'fill' | 'restart' | 'skip'
  /** Reads `-` and `_` as letters of the alphabet for addresses. */
  isUrlSafe: boolean
}

const pad = 64
const blank = 65
const urlSafe = 66
const junk = 67

const alphabet = 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/'
const kinds = new Uint8Array(256).fill(junk)
for (let value = 0; value < 64; value++) kinds[alphabet.charCodeAt(value)] = value
for (const byte of [0x20, 0x09, 0x0a, 0x0b, 0x0c, 0x0d]) kinds[byte] = blank
kinds[0x3d] = pad
kinds[0x2d] = urlSafe
kinds[0x5f] = urlSafe

/** The rules by which base64 decodes to different bytes; one for well-formed base64. */
export function listBase64Rules(input: Iterable<Buffer>): Base64Rule[] {
  let hasJunk = false
  let hasUrlSafe = false
  let hasPad = false
  let isAfterJunk = false
  let isAfterPad = false
  for (const piece of input) {
    for (let at = 0; at < piece.length; at++) {
      const kind = kinds[piece[at] as number] as number
      if (kind < pad) {
        isAfterJunk ||= hasJunk || hasUrlSafe
        isAfterPad ||= hasPad
      } else if (kind === pad) hasPad = true
      else if (kind === urlSafe) hasUrlSafe = true
      else if (kind === junk) hasJunk = true
    }
  }
  const rules: Base64Rule[] = [{ onJunk: 'skip', onPad: 'stop', isUrlSafe: false }]
  if (isAfterPad) {
    for (const onPad of ['fill', 'restart', 'skip'] as const) rules.push({ onJunk: 'skip', onPad, isUrlSafe: false })
  }
  if (isAfterJunk) rules.push({ onJunk: 'stop', onPad: 'stop', isUrlSafe: false })
  if (hasUrlSafe) rules.push({ onJunk: 'skip', onPad: 'restart', isUrlSafe: true })
  return rules
}

/** Decodes base64. Characters that do not make a whole byte at the end are left out. */
export function* decodeBase64(input: Iterable<Buffer>, rule: Base64Rule = plainRule): Generator<Buffer> {
  let bits = 0
  let count = 0
  let pads = 0
  for (const piece of input) {
    const out = Buffer.allocUnsafe(((piece.length * 3) >> 2) + 3)
    let length = 0
    let isOver = false
    for (let at = 0; at < piece.length; at++) {
      const byte = piece[at] as number
      let kind = kinds[byte] as number
      if (kind === urlSafe) kind = rule.isUrlSafe ? (byte === 0x2d ? 62 : 63) : junk
      if (kind < pad) {
        bits = ((bits << 6) | kind) & 0xff_ffff
        count = (count + 1) & 3
        pads = 0
        // A byte is complete with the second, third and fourth character.
        if (count !== 1) out[length++] = (bits >> (count === 0 ? 0 : 8 - 2 * count)) & 0xff
      } else if (kind === pad) {
        pads++
        if (rule.onPad === 'stop') isOver = true
        else if (rule.onPad === 'fill') isOver = count >= 2 && count + pads >= 4
        else if (rule.onPad === 'restart') count = 0
      } else if (kind === junk && rule.onJunk === 'stop') isOver = true
      if (isOver) break
    }
    yield out.subarray(0, length)
    if (isOver) return
  }
}

const plainRule: Base64Rule = { onJunk: 'skip', onPad: 'stop', isUrlSafe: false }

/** The value of a hexadecimal digit, or -1. */
export const hexValue = (byte: number | undefined): number => {
  if (byte === undefined) return -1
  if (byte >= 0x30 && byte <= 0x39) return byte - 0x30
  const letter = byte | 0x20
  return letter >= 0x61 && letter <= 0x66 ? letter - 0x57 : -1
}

/** No soft line break has more blanks before its line end. */
const maxBreakBytes = 1000

/**
 * Decodes quoted-printable. Escapes that are none stay as they are. With `skipsToLineFeed`, a soft line break with a
 * carriage return alone hides the rest of the line, as in Python.
 */
export function* decodeQuotedPrintable(input: Iterable<Buffer>, { skipsToLineFeed = false } = {}): Generator<Buffer> {
  let carry: Buffer = Buffer.alloc(0)
  let isHidden = false
  function decode(bytes: Buffer, isLast: boolean): Buffer {
    const out = Buffer.allocUnsafe(bytes.length)
    let length = 0
    let at = 0
    while (at < bytes.length) {
      const byte = bytes[at] as number
      if (isHidden) {
        at++
        isHidden = byte !== 0x0a
      } else if (byte !== 0x3d) {
        out[length++] = byte
        at++
      } else {
        if (!isLast && bytes.length - at < maxBreakBytes && isOpenEscape(bytes, at)) break
        const high = hexValue(bytes[at + 1])
        const low = hexValue(bytes[at + 2])
        const next = findSoftBreak(bytes, at)
        if (high >= 0 && low >= 0) {
          out[length++] = high * 16 + low
          at += 3
        } else if (next !== undefined) {
          isHidden = skipsToLineFeed && bytes[next - 1] === 0x0d
          at = next
        } else {
          out[length++] = byte
          at++
        }
      }
    }
    carry = bytes.subarray(at)
    return out.subarray(0, length)
  }
  for (const piece of input) yield decode(carry.length === 0 ? piece : Buffer.concat([carry, piece]), false)
  yield decode(carry, true)
}

/** Whether the end of the bytes leaves open what the escape at `at` means. */
function isOpenEscape(bytes: Buffer, at: number): boolean {
  let end = at + 1
  while (bytes[end] === 0x20 || bytes[end] === 0x09) end++
  return end + 2 > bytes.length
}

/** The position behind a soft line break: an equals sign, blanks, and the end of the line. */
function findSoftBreak(bytes: Buffer, at: number): number | undefined {
  let end = at + 1
  while (end - at < maxBreakBytes && (bytes[end] === 0x20 || bytes[end] === 0x09)) end++
  if (bytes[end] === 0x0a) return end + 1
  if (bytes[end] !== 0x0d) return undefined
  return bytes[end + 1] === 0x0a ? end + 2 : end + 1
}

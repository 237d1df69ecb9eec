import type { Source } from '../source.ts'

const open = 0x7b
const close = 0x7d
const backslash = 0x5c
const pieceBytes = 65_536
/** Programs cut longer control words. */
const maxWordBytes = 64
const controlWord = /^\\(?:([a-zA-Z]{1,40})(-?\d{1,10})? ?|'[\da-fA-F]{0,2}|[^a-zA-Z])/s

/** The position behind a control word, and the number of raw bytes that follow it. */
function readControl(source: Source, at: number): { end: number; rawBytes: number } {
  const text = source.read(at, at + maxWordBytes).toString('latin1')
  const [all = '\\', word, number] = controlWord.exec(text) ?? []
  const rawBytes = word === 'bin' ? Math.max(0, Number(number ?? 0)) : 0
  return { end: at + Math.max(1, all.length), rawBytes: Math.min(rawBytes, source.bytes) }
}

/**
 * Decodes the digits behind `\objdata` up to the end of their group. Blanks, control words and other characters between
 * the digits are skipped, as Word does. Programs differ in whether the digits in an inner group count.
 */
export function decodeObjectData(source: Source, start: number, { takesNested }: { takesNested: boolean }) {
  let hasNested = false

  function* read(): Generator<Buffer> {
    let output = Buffer.allocUnsafe(pieceBytes)
    let used = 0
    let high = -1
    let depth = 1
    let at = start
    // A number may belong to the control word itself.
    at += /^-?\d{1,10} /.exec(source.read(start, start + 16).toString('latin1'))?.[0].length ?? 0
    while (at < source.bytes && depth > 0) {
      const block = source.read(at, at + pieceBytes)
      let n = 0
      for (; n < block.length && depth > 0; n++) {
        const byte = block[n] as number
        if (byte === backslash) break
        if (byte === open) {
          hasNested = true
          depth++
        } else if (byte === close) depth--
        else if (depth === 1 || takesNested) {
          const digit = toDigit(byte)
          if (digit < 0) continue
          if (high < 0) high = digit
          else {
            output[used++] = high * 16 + digit
            high = -1
          }
        }
      }
      at += n
      if (depth > 0 && n < block.length) {
        const control = readControl(source, at)
        at = control.end
        if (control.rawBytes > 0) {
          yield output.subarray(0, used)
          yield* source.pieces(at, at + control.rawBytes)
          output = Buffer.allocUnsafe(pieceBytes)
          used = 0
          at += control.rawBytes
        }
      }
      if (used > pieceBytes / 2) {
        yield output.subarray(0, used)
        output = Buffer.allocUnsafe(pieceBytes)
        used = 0
      }
    }
    yield output.subarray(0, used)
  }

  return { pieces: read(), hasNested: () => hasNested }
}

function toDigit(byte: number): number {
  if (byte >= 0x30 && byte <= 0x39) return byte - 0x30
  const letter = byte | 0x20
  return letter >= 0x61 && letter <= 0x66 ? letter - 0x57 : -1
}

/** The position behind the group that encloses the whole document, and behind the blanks and zeros after it. */
export function findRtfEnd(source: Source): number {
  let depth = 0
  let at = 0
  while (at < source.bytes) {
    const block = source.read(at, at + 2 ** 20)
    let n = 0
    let hasBin = false
    for (; n < block.length; n++) {
      const byte = block[n]
      if (byte === open) depth++
      else if (byte === close && --depth <= 0) return skipBlanks(source, at + n + 1)
      else if (byte === backslash) {
        // A word that is cut by the end of the block is read again with the next one.
        hasBin = block[n + 1] === 0x62 && block[n + 2] === 0x69
        if (hasBin || n + 3 >= block.length) break
        n++
      }
    }
    at += n
    if (n < block.length) {
      const control = readControl(source, at)
      at = control.end + (hasBin ? control.rawBytes : 0)
    }
  }
  return source.bytes
}

function skipBlanks(source: Source, from: number): number {
  const text = source.read(from, from + 4096).toString('latin1')
  return from + (/^[\0\s]*/.exec(text)?.[0].length ?? 0)
}

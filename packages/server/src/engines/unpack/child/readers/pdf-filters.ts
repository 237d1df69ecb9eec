/** Bytes on their way through filters. */
export type Bytes = Iterable<Buffer> | AsyncIterable<Buffer>

/** Notes what went wrong while a stream was decoded. Programs take what was decoded up to there. */
export type Damage = {
  isDamaged: boolean
  /** There is data behind the damage, from which some programs decode more. */
  isBroken?: boolean
  /** Text of digits has other bytes, which some programs skip and others take for digits. */
  hasOddText?: boolean
}

/** The larger parts of the output are gathered, because each piece costs a message to the service. */
const pieceBytes = 65_536

/** Collects single bytes to pieces. */
function newOutput() {
  let buffer = Buffer.allocUnsafe(pieceBytes)
  let used = 0
  return {
    add(byte: number) {
      if (used === buffer.length) {
        const larger = Buffer.allocUnsafe(buffer.length * 2)
        buffer.copy(larger)
        buffer = larger
      }
      buffer[used++] = byte
    },
    isFull: () => used >= pieceBytes,
    take(): Buffer {
      const taken = Buffer.from(buffer.subarray(0, used))
      used = 0
      return taken
    },
  }
}

type Output = ReturnType<typeof newOutput>

/** Passes every byte to `step` until it returns true, which means the end of the data, and `finish` afterwards. */
async function* decodeBytes(
  input: Bytes,
  output: Output,
  step: (byte: number) => boolean,
  finish: () => void = () => {},
) {
  reading: for await (const piece of input) {
    for (let at = 0; at < piece.length; at++) {
      if (step(piece[at] as number)) break reading
      if (output.isFull()) yield output.take()
    }
  }
  finish()
  yield output.take()
}

/** Decodes pairs of hexadecimal digits up to `>`. */
export function decodeHex(input: Bytes, damage: Damage): AsyncGenerator<Buffer> {
  const output = newOutput()
  let high = -1
  return decodeBytes(
    input,
    output,
    (byte) => {
      if (byte === 0x3e) return true
      const digit = toDigit(byte)
      // Some programs skip such a byte, others take it for a digit.
      if (digit < 0) {
        if (!isBlank(byte)) damage.hasOddText = true
        return false
      }
      if (high < 0) high = digit
      else {
        output.add(high * 16 + digit)
        high = -1
      }
      return false
    },
    () => {
      if (high >= 0) output.add(high * 16)
    },
  )
}

const isBlank = (byte: number) => byte === 0x20 || (byte >= 9 && byte <= 13)

function toDigit(byte: number): number {
  if (byte >= 0x30 && byte <= 0x39) return byte - 0x30
  const letter = byte | 0x20
  return letter >= 0x61 && letter <= 0x66 ? letter - 0x57 : -1
}

/** Decodes groups of five digits to base 85 up to `~`. */
export function decodeAscii85(input: Bytes, damage: Damage): AsyncGenerator<Buffer> {
  const output = newOutput()
  let value = 0
  let digits = 0
  let count = 0
  function addGroup(bytes: number) {
    const group = value >>> 0
    for (let n = 0; n < bytes; n++) output.add((group >>> (24 - 8 * n)) & 255)
    value = 0
    digits = 0
  }
  return decodeBytes(
    input,
    output,
    (byte) => {
      if (byte === 0x7e) {
        // The digits may begin with the mark `<~`. Anywhere else a `~` ends them.
        if (count !== 1 || digits !== 1) return true
        value = 0
        digits = 0
      }
      if (byte === 0x7a && digits === 0) addGroup(4)
      if (byte < 0x21 || byte > 0x75) {
        const isKnown = isBlank(byte) || byte === 0x7e || (byte === 0x7a && digits === 0)
        if (!isKnown) damage.hasOddText = true
        return false
      }
      count++
      value = (value * 85 + byte - 0x21) % 2 ** 32
      if (++digits === 5) addGroup(4)
      return false
    },
    () => {
      if (digits < 2) return
      const bytes = digits - 1
      for (let n = digits; n < 5; n++) value = (value * 85 + 84) % 2 ** 32
      addGroup(bytes)
    },
  )
}

/** Decodes runs: a length below 128 precedes so many bytes and one more, a larger one a byte that is repeated. */
export function decodeRuns(input: Bytes): AsyncGenerator<Buffer> {
  const output = newOutput()
  let copied = 0
  let repeated = 0
  return decodeBytes(input, output, (byte) => {
    if (copied > 0) {
      output.add(byte)
      copied--
    } else if (repeated > 0) {
      for (; repeated > 0; repeated--) output.add(byte)
    } else if (byte === 128) {
      return true
    } else if (byte < 128) {
      copied = byte + 1
    } else {
      repeated = 257 - byte
    }
    return false
  })
}

const clearCode = 256
const endCode = 257

/** Decodes LZW with codes of 9 to 12 bits. `earlyChange` is 1 where the width grows one code early. */
export function decodeLzw(input: Bytes, earlyChange: number): AsyncGenerator<Buffer> {
  const output = newOutput()
  const prefixes = new Uint16Array(4096)
  const suffixes = new Uint8Array(4096)
  const stack = new Uint8Array(4096)
  let next = 258
  let width = 9
  let previous = -1
  let first = 0
  let bits = 0
  let bitCount = 0

  function addCode(code: number): boolean {
    if (code === endCode) return true
    if (code === clearCode) {
      next = 258
      width = 9
      previous = -1
      return false
    }
    if (code > next || (previous < 0 && code > 255)) return true
    let depth = 0
    let at = code
    if (code === next) {
      stack[depth++] = first
      at = previous
    }
    for (; at > 255 && depth < stack.length - 1; at = prefixes[at] as number) stack[depth++] = suffixes[at] as number
    first = at & 255
    stack[depth++] = first
    while (depth > 0) output.add(stack[--depth] as number)
    if (previous >= 0 && next < 4096) {
      prefixes[next] = previous
      suffixes[next] = first
      next++
    }
    previous = code
    width = next + earlyChange >= 2048 ? 12 : next + earlyChange >= 1024 ? 11 : next + earlyChange >= 512 ? 10 : 9
    return false
  }

  return decodeBytes(input, output, (byte) => {
    bits = ((bits << 8) | byte) & 0xff_ffff
    bitCount += 8
    if (bitCount < width) return false
    bitCount -= width
    return addCode((bits >>> bitCount) & ((1 << width) - 1))
  })
}

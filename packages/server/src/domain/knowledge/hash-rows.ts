/** Where the lines of a file have their hash and their name, counted from 0, and a text that belongs to every name. */
export type LineForm = { separator: number; hash: number; name: number | undefined; suffix: string }

/** Rows of one statement. */
const capacity = 1024 * 1024
/** Bytes of a row without its name: `\x`, 64 digits, a tab and a line feed. */
const rowBytes = 68
const hashDigits = 64
export const maxNameLength = 200
/** A name of 200 characters and its suffix; a character has up to four bytes. */
const maxNameBytes = 4 * (maxNameLength + 20)
const [tab, lineFeed, carriageReturn, blank, quote, hash, tilde] = [9, 10, 13, 32, 34, 35, 126]

const isHexDigit = new Uint8Array(256)
for (const digit of '0123456789abcdefABCDEF') isHexDigit[digit.charCodeAt(0)] = 1

/**
 * Rows of a list, collected in memory that is used again for the next ones. `addPlain` copies the bytes of a line
 * without making texts of them: of a list of 5 million hashes these would be a gigabyte of garbage.
 */
export function newHashRows() {
  const bytes = Buffer.alloc(capacity)
  let [length, count] = [0, 0]

  const begin = () => {
    length += bytes.write('\\x', length, 'latin1')
  }
  const end = (suffix: string) => {
    length += bytes.write(suffix, length)
    bytes[length++] = lineFeed
    count++
  }

  return {
    isFull: () => length + rowBytes + maxNameBytes > capacity,
    count: () => count,
    /** The rows in the form that the store takes. They are overwritten after `clear`. */
    get: () => ({ rows: bytes.subarray(0, length), count }),
    clear() {
      length = 0
      count = 0
    },
    add(sha256: string, name: string | null) {
      begin()
      length += bytes.write(sha256, length, 'latin1')
      bytes[length++] = tab
      end(name ?? '')
    },
    /** Adds the row of a line in plain ASCII. Returns false for every other line, which a reader of texts must judge. */
    addPlain(source: Buffer, from: number, lineEnd: number, form: LineForm): boolean {
      const fields = findFields(source, from, lineEnd, form)
      if (fields === undefined) return false
      begin()
      length += source.copy(bytes, length, fields.hashAt, fields.hashAt + hashDigits)
      bytes[length++] = tab
      length += source.copy(bytes, length, fields.nameFrom, fields.nameEnd)
      end(fields.nameEnd > fields.nameFrom ? form.suffix : '')
      return true
    },
  }
}

/** The object is used again for every line, because there are millions of them. */
const found = { hashAt: 0, nameFrom: 0, nameEnd: 0 }

function findFields(source: Buffer, from: number, lineEnd: number, form: LineForm): typeof found | undefined {
  const end = source[lineEnd - 1] === carriageReturn ? lineEnd - 1 : lineEnd
  // A comment may have blanks before it.
  if (source[from] === hash || source[from] === blank) return undefined
  let [field, fieldFrom, hashAt] = [0, from, -1]
  found.nameFrom = 0
  found.nameEnd = 0
  for (let at = from; at <= end; at++) {
    const byte = at === end ? form.separator : (source[at] ?? 0)
    if (byte !== form.separator) {
      if (byte < blank || byte > tilde || byte === quote) return undefined
      continue
    }
    if (field === form.hash) {
      if (!isHash(source, fieldFrom, at)) return undefined
      hashAt = fieldFrom
    }
    if (field === form.name) {
      if (!isName(source, fieldFrom, at)) return undefined
      found.nameFrom = fieldFrom
      found.nameEnd = at
    }
    field++
    fieldFrom = at + 1
  }
  if (hashAt === -1) return undefined
  found.hashAt = hashAt
  return found
}

function isHash(source: Buffer, from: number, end: number): boolean {
  if (end - from !== hashDigits) return false
  for (let at = from; at < end; at++) if (isHexDigit[source[at] ?? 0] === 0) return false
  return true
}

/** Whether the name can be copied as it is: not too long, and without blanks around it. */
const isName = (source: Buffer, from: number, end: number) =>
  end - from <= maxNameLength && (end === from || (source[from] !== blank && source[end - 1] !== blank))

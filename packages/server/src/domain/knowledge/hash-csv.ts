import { isHexDigit } from '../content/digits.ts'

/** A row of a list, or the reason why the line is not one; undefined for a line without a row, such as the header. */
export type HashLine = { sha256: string; name: string | null } | { fault: string } | undefined

/** Columns of the file: their name in the header, or their number, counted from 1. */
export type HashColumns = { hash?: string | undefined; name?: string | undefined }

/** Whether a field is a SHA-256 hash in hex. */
export const isSha256Text = (text: string | undefined) => text !== undefined && /^[0-9a-f]{64}$/i.test(text)
const comma = 44
const hashColumns = ['sha256', 'sha256_hash', 'hash_sha256', 'sha-256', 'hash']

/** Reads the lines of a file of hashes. */
export type HashReader = {
  readLine(line: string): HashLine
  /** The form that lines have by what was read; undefined before the first row. */
  findForm(): LineForm | undefined
}

/** Thrown when the header does not have a column that was asked for. */
export class ColumnMissing extends Error {}

/**
 * Reads lines of CSV. Lines that begin with `#` are comments. The first other line is the header if it has no hash.
 * Without a name for it, the column of the hash is the first one with a hash, or a common name in the header.
 */
export function makeHashReader(columns: HashColumns): HashReader {
  let places: { hash: number | undefined; name: number | undefined } | undefined
  let form: LineForm | undefined

  function readLine(line: string): HashLine {
    const text = line.trim()
    if (text === '' || text.startsWith('#')) return undefined
    // Most lists are hashes alone, or are not quoted.
    const fields = text.includes('"') ? splitQuoted(text) : text.split(',').map((field) => field.trim())
    if (fields === undefined) return { fault: 'a quotation mark is not closed' }
    if (places === undefined) {
      const isHeader = !fields.some(isSha256Text)
      places = findPlaces(isHeader ? fields : undefined, columns)
      if (isHeader) return undefined
    }
    places.hash ??= fields.findIndex(isSha256Text)
    const sha256 = places.hash === -1 ? undefined : fields[places.hash]
    if (places.hash === -1) places.hash = undefined
    else form ??= { separator: comma, hash: places.hash, name: places.name, suffix: '' }
    if (!isSha256Text(sha256)) return { fault: 'there is no SHA-256 of 64 hexadecimal digits' }
    return { sha256: sha256 ?? '', name: places.name === undefined ? null : toName(fields[places.name]) }
  }
  return { readLine, findForm: () => form }
}

function findPlaces(header: string[] | undefined, { hash, name }: HashColumns) {
  const find = (column: string): number => {
    if (/^[1-9]\d{0,2}$/.test(column)) return Number(column) - 1
    if (header === undefined) {
      throw new ColumnMissing(`The file has no header, so name the column ${column} by its number.`)
    }
    const place = header.findIndex((field) => field.toLowerCase() === column.toLowerCase())
    if (place === -1) throw new ColumnMissing(`The header has no column ${column}. It has: ${header.join(', ')}.`)
    return place
  }
  const common = header?.findIndex((field) => hashColumns.includes(field.toLowerCase())) ?? -1
  return {
    hash: hash === undefined ? (common === -1 ? undefined : common) : find(hash),
    name: name === undefined ? undefined : find(name),
  }
}

/** Splits a line with quoted fields; undefined when a quotation mark is not closed. */
function splitQuoted(text: string): string[] | undefined {
  const fields: string[] = []
  let at = 0
  while (at <= text.length) {
    while (text[at] === ' ') at++
    if (text[at] !== '"') {
      const end = text.indexOf(',', at)
      fields.push(text.slice(at, end === -1 ? undefined : end).trim())
      if (end === -1) return fields
      at = end + 1
      continue
    }
    let field = ''
    for (;;) {
      const end = text.indexOf('"', at + 1)
      if (end === -1) return undefined
      field += text.slice(at + 1, end)
      at = end + 1
      // Two quotation marks stand for one.
      if (text[at] !== '"') break
      field += '"'
    }
    fields.push(field.trim())
    const comma = text.indexOf(',', at)
    if (comma === -1) return fields
    at = comma + 1
  }
  return fields
}

const maxNameLength = 200

/** Names appear in signals: one line without control characters, and not longer than those of signatures. */
export function toName(text: string | undefined): string | null {
  const name = (text ?? '')
    .replaceAll(/\p{Cc}+/gu, ' ')
    .trim()
    .slice(0, maxNameLength)
    .toWellFormed()
  return name === '' ? null : name
}

/** Where the lines of a file have their hash and their name, counted from 0, and a text that belongs to every name. */
export type LineForm = { separator: number; hash: number; name: number | undefined; suffix: string }

/** Bytes of the rows of one statement. */
const batchBytes = 1024 * 1024
/** Bytes of a row without its name: `\x`, 64 digits, a tab and a line feed. */
const rowBytes = 68
const hashDigits = 64
/** A name of 200 characters and its suffix; a character has up to four bytes. */
const maxNameBytes = 4 * (maxNameLength + 20)
const [tab, lineFeed, carriageReturn, blank, quote, numberSign, tilde] = [9, 10, 13, 32, 34, 35, 126]

/**
 * Rows of a list, collected in memory that is used again for the next ones. `addPlain` copies the bytes of a line
 * without making texts of them: of a list of 5 million hashes these would be a gigabyte of garbage.
 */
export function newHashRows() {
  const bytes = Buffer.alloc(batchBytes)
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
    isFull: () => length + rowBytes + maxNameBytes > batchBytes,
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
const plainFields = { hashAt: 0, nameFrom: 0, nameEnd: 0 }

function findFields(source: Buffer, from: number, lineEnd: number, form: LineForm): typeof plainFields | undefined {
  const end = source[lineEnd - 1] === carriageReturn ? lineEnd - 1 : lineEnd
  // A comment may have blanks before it.
  if (source[from] === numberSign || source[from] === blank) return undefined
  let [field, fieldFrom, hashAt] = [0, from, -1]
  plainFields.nameFrom = 0
  plainFields.nameEnd = 0
  for (let at = from; at <= end; at++) {
    const byte = at === end ? form.separator : (source[at] ?? 0)
    if (byte !== form.separator) {
      if (byte < blank || byte > tilde || byte === quote) return undefined
      continue
    }
    if (field === form.hash) {
      if (!isSha256Bytes(source, fieldFrom, at)) return undefined
      hashAt = fieldFrom
    }
    if (field === form.name) {
      if (!isPlainName(source, fieldFrom, at)) return undefined
      plainFields.nameFrom = fieldFrom
      plainFields.nameEnd = at
    }
    field++
    fieldFrom = at + 1
  }
  if (hashAt === -1) return undefined
  plainFields.hashAt = hashAt
  return plainFields
}

function isSha256Bytes(source: Buffer, from: number, end: number): boolean {
  if (end - from !== hashDigits) return false
  for (let at = from; at < end; at++) if (isHexDigit[source[at] ?? 0] === 0) return false
  return true
}

/** Whether the name can be copied as it is: not too long, and without blanks around it. */
const isPlainName = (source: Buffer, from: number, end: number) =>
  end - from <= maxNameLength && (end === from || (source[from] !== blank && source[end - 1] !== blank))

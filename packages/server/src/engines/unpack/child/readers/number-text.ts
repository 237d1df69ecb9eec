import { hasNumberList, minNumbers, numberKinds } from '../../../../domain/content/digits.ts'
import type { Members, Range, Reader, Reading, Source } from '../reader.ts'
import {
  accountForText,
  beginsAsDocument,
  beginsAsText,
  type EncodedData,
  findTextEnd,
  giveEncoded,
} from './text-lines.ts'

/** Reads bytes that program text or data has as a list of numbers, such as `0x58, 0x35` or `88, 53`. */
export const numberTextReader: Reader = {
  name: 'lists of numbers',
  recognizes: (source) => beginsAsText(source) && !beginsAsDocument(source) && mayHoldList(source),
  read: readNumbers,
}

const pieceBytes = 2 ** 20
const overlapBytes = 4096

function mayHoldList(source: Source): boolean {
  for (let at = 0; at < source.bytes; at += pieceBytes)
    if (hasNumberList(source.read(at, at + pieceBytes + overlapBytes).toString('latin1'))) return true
  return false
}

async function readNumbers(source: Source, members: Members): Promise<Reading> {
  const textEnd = findTextEnd(source)
  const hasData = await giveEncoded(members, '[further numbers]', () => listEncoded(source, textEnd))
  // The text itself was scanned with the content.
  return { accounted: hasData ? accountForText(textEnd) : [], doubts: [] }
}

function* listEncoded(source: Source, end: number): Generator<EncodedData> {
  for (const list of listNumberLists(source, end))
    yield { path: `[numbers at ${list.start}]`, decode: () => decodeNumbers(source, list) }
}

/** How the numbers of a list are written: decimal and with `0x`, as pairs of hexadecimal digits, or octal. */
const decimal = 1
const pairs = 2
const octal = 4
const anyForm = decimal | pairs | octal

/** Numbers that follow each other, and one form in which all of them can be read. */
type NumberList = Range & { form: number }

const digit = 1
const separator = 2
const maxNumberChars = 4
/** Files have more different bytes than tables of offsets and flags. */
const minDifferent = 8
const comma = 0x2c

type OpenList = {
  start: number
  end: number
  /** The start of the second number if a line end stands before it: the first one may belong to other text. */
  secondLine: number | undefined
  count: number
  forms: number
  hasCommas: boolean
  /** Numbers that differ, up to `minDifferent`. */
  different: Set<string>
}

/** Finds lists of numbers from -128 to 255 in the text before `end`. */
function* listNumberLists(source: Source, end: number): Generator<NumberList> {
  let list: OpenList | undefined
  let token = ''
  let hasLineEnd = false
  /** The number that would begin here is the end of a word. */
  let isPart = false
  let at = 0

  function* endToken(): Generator<NumberList> {
    if (token === '') return
    const forms = isPart ? 0 : findForms(token)
    const start = at - token.length
    if (list !== undefined && (list.forms & forms) === 0) {
      yield* closeList(list)
      list = undefined
    }
    if (forms !== 0) {
      list ??= {
        start,
        end: at,
        secondLine: undefined,
        count: 0,
        forms: anyForm,
        hasCommas: false,
        different: new Set(),
      }
      if (list.count === 1 && hasLineEnd) list.secondLine = start
      list.count++
      list.end = at
      list.forms &= forms
      if (list.different.size < minDifferent) list.different.add(token)
    }
    token = ''
    hasLineEnd = false
  }

  for (const piece of source.pieces(0, end)) {
    for (let i = 0; i < piece.length; i++, at++) {
      const byte = piece[i] as number
      const kind = numberKinds[byte]
      if (kind === digit) {
        if (token.length <= maxNumberChars) token += String.fromCharCode(byte)
        else isPart = true
        continue
      }
      yield* endToken()
      isPart = kind !== separator && isWordChar[byte] === 1
      if (kind !== separator) {
        if (list !== undefined) yield* closeList(list)
        list = undefined
      } else if (byte === comma && list !== undefined) list.hasCommas = true
      else if (byte === 0x0a || byte === 0x0d) hasLineEnd = true
    }
  }
  yield* endToken()
  if (list !== undefined) yield* closeList(list)
}

const isWordChar = Uint8Array.from({ length: 256 }, (_, byte) =>
  /[A-Za-z_$.%#]/.test(String.fromCharCode(byte)) ? 1 : 0,
)

function findForms(token: string): number {
  if (/^0x[0-9a-f]{1,2}$/i.test(token)) return decimal
  let forms = 0
  if (/^-?\d{1,3}$/.test(token) && Number(token) >= -128 && Number(token) <= 255) forms |= decimal
  if (/^[0-9a-f]{2}$/i.test(token)) forms |= pairs
  if (/^[0-3][0-7]{2}$/.test(token)) forms |= octal
  return forms
}

function* closeList({ start, end, secondLine, count, forms, hasCommas, different }: OpenList): Generator<NumberList> {
  if (count < minNumbers || different.size < minDifferent) return
  for (const form of [decimal, pairs, octal]) {
    // Pairs with blanks between them are read as digits.
    if ((forms & form) === 0 || (form === pairs && !hasCommas)) continue
    yield { start, end, form }
    if (secondLine !== undefined) yield { start: secondLine, end, form }
  }
}

/** Decodes a list to the bytes that its numbers stand for. */
function* decodeNumbers(source: Source, { start, end, form }: NumberList): Generator<Buffer> {
  const radix = form === pairs ? 16 : form === octal ? 8 : 10
  let rest = ''
  let at = start
  for (const piece of source.pieces(start, end)) {
    at += piece.length
    const tokens = (rest + piece.toString('latin1')).split(/[, \t\r\n\\]+/)
    rest = at < end ? (tokens.pop() ?? '') : ''
    const found = tokens.filter((token) => token !== '')
    yield Buffer.from(found.map((token) => (/^0x/i.test(token) ? Number(token) : Number.parseInt(token, radix))))
  }
}

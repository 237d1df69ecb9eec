/** A value of PDF. Names are strings, because the bytes of a PDF string are never taken for one. */
export type PdfValue = null | boolean | number | string | Buffer | Reference | PdfValue[] | Dictionary

/** Refers to the object with this number and generation. */
export type Reference = { object: number; generation: number }

/** The values of each key in their order. Programs differ in which one they take when a key is there twice. */
export type Dictionary = Map<string, PdfValue[]>

export type Parsed = { value: PdfValue; end: number }

const maxDepth = 64
const blank = /[\0\t\n\f\r ]/
const tokenEnd = /[\0\t\n\f\r ()<>[\]{}/%]/

/** The first value of a key. */
export const getValue = (dictionary: Dictionary, ...keys: string[]): PdfValue =>
  keys.map((key) => dictionary.get(key)?.[0]).find((value) => value !== undefined) ?? null

export const isReference = (value: PdfValue): value is Reference =>
  typeof value === 'object' && value !== null && 'object' in value

export const isDictionary = (value: PdfValue): value is Dictionary => value instanceof Map

/** The position of the first byte that is neither blank nor part of a comment. */
export function skipBlanks(text: string, from: number): number {
  let at = from
  for (; at < text.length; at++) {
    if (text[at] === '%') {
      while (at < text.length && text[at] !== '\n' && text[at] !== '\r') at++
    } else if (!blank.test(text[at] as string)) {
      return at
    }
  }
  return at
}

/** Reads the value at a position of the text, which has one character for each byte. Undefined for anything else. */
export function parseValue(text: string, from: number, depth = 0): Parsed | undefined {
  const at = skipBlanks(text, from)
  if (depth > maxDepth || at >= text.length) return undefined
  switch (text[at]) {
    case '/':
      return parseName(text, at + 1)
    case '(':
      return parseString(text, at + 1)
    case '[':
      return parseList(text, at + 1, depth)
    case '<':
      return text[at + 1] === '<' ? parseDictionary(text, at + 2, depth) : parseHexString(text, at + 1)
    case ')':
    case '>':
    case ']':
      return undefined
    case '{':
    case '}':
      return { value: null, end: at + 1 }
    default:
      return parseWord(text, at)
  }
}

function findTokenEnd(text: string, from: number): number {
  let end = from
  while (end < text.length && !tokenEnd.test(text[end] as string)) end++
  return end
}

function parseName(text: string, from: number): Parsed {
  const end = findTokenEnd(text, from)
  const name = text
    .slice(from, end)
    .replace(/#([\da-f]{2})/gi, (_, hex: string) => String.fromCharCode(Number.parseInt(hex, 16)))
  return { value: name, end }
}

const reference = /[\0\t\n\f\r ]+(\d{1,10})[\0\t\n\f\r ]+R(?![A-Za-z0-9])/y

/** Reads a number, a reference or a word such as `true`. Unknown words count as null. */
function parseWord(text: string, from: number): Parsed {
  const end = findTokenEnd(text, from)
  const word = text.slice(from, end)
  if (/^\d{1,10}$/.test(word)) {
    reference.lastIndex = end
    const found = reference.exec(text)
    if (found !== null) {
      return { value: { object: Number(word), generation: Number(found[1]) }, end: reference.lastIndex }
    }
  }
  const number = Number.parseFloat(word)
  if (!Number.isNaN(number)) return { value: number, end }
  return { value: word === 'true' ? true : word === 'false' ? false : null, end }
}

const escapes: Record<string, string> = { n: '\n', r: '\r', t: '\t', b: '\b', f: '\f' }

function parseString(text: string, from: number): Parsed | undefined {
  let read = ''
  let depth = 1
  for (let at = from; at < text.length; at++) {
    const char = text[at] as string
    if (char === '\\') {
      const octal = /^[0-7]{1,3}/.exec(text.slice(at + 1, at + 4))?.[0]
      const next = text[at + 1] ?? ''
      if (octal !== undefined) {
        read += String.fromCharCode(Number.parseInt(octal, 8) & 255)
        at += octal.length
      } else {
        const isLineEnd = next === '\r' || next === '\n'
        if (!isLineEnd) read += escapes[next] ?? next
        at += next === '\r' && text[at + 2] === '\n' ? 2 : 1
      }
      continue
    }
    if (char === '(') depth++
    if (char === ')') depth--
    if (depth === 0) return { value: Buffer.from(read, 'latin1'), end: at + 1 }
    read += char
  }
  return undefined
}

function parseHexString(text: string, from: number): Parsed | undefined {
  const end = text.indexOf('>', from)
  if (end === -1) return undefined
  const digits = text.slice(from, end).replace(/[^\da-f]/gi, '')
  return { value: Buffer.from(digits.length % 2 === 0 ? digits : `${digits}0`, 'hex'), end: end + 1 }
}

function parseList(text: string, from: number, depth: number): Parsed | undefined {
  const value: PdfValue[] = []
  let at = skipBlanks(text, from)
  while (text[at] !== ']') {
    const item = parseValue(text, at, depth + 1)
    if (item === undefined) return undefined
    value.push(item.value)
    at = skipBlanks(text, item.end)
  }
  return { value, end: at + 1 }
}

function parseDictionary(text: string, from: number, depth: number): Parsed | undefined {
  const value: Dictionary = new Map()
  let at = skipBlanks(text, from)
  while (text[at] !== '>') {
    // Programs skip words where a key belongs.
    const isKey = text[at] === '/'
    const key = parseValue(text, at, depth + 1)
    if (key === undefined) return undefined
    at = skipBlanks(text, key.end)
    if (!isKey || typeof key.value !== 'string') continue
    if (text[at] === '>') break
    const item = parseValue(text, at, depth + 1)
    if (item === undefined) return undefined
    const known = value.get(key.value)
    if (known === undefined) value.set(key.value, [item.value])
    else if (known.length < maxDepth) known.push(item.value)
    at = skipBlanks(text, item.end)
  }
  return text[at + 1] === '>' ? { value, end: at + 2 } : undefined
}

/** The header of a mail or of a part of it, as one of several kinds of programs reads it. */
export type MailHeader = {
  /** Values of Content-Type and Content-Transfer-Encoding, unfolded, in the order of the header. */
  types: string[]
  encodings: string[]
  fileName: string | undefined
  /** The position of the body, counted from the start of the header. */
  bodyAt: number
  /** Some field is of MIME or of mail. */
  isMail: boolean
}

type Grammar = { isField: RegExp; endsAtOthers: boolean; isEnd: RegExp; lineEnd: RegExp }

/** Python's rules: a line that is no field begins the body. */
const strict: Grammar = {
  isField: /^(?:From |>From |[\x21-\x39\x3b-\x7e]*:)/,
  endsAtOthers: true,
  isEnd: /^$/,
  lineEnd: /\r\n|\r|\n/g,
}
/** The rules of tolerant programs: lines that are no fields are skipped, up to an empty line. */
const lenient: Grammar = { isField: /^[^\s:]+[ \t]*:/, endsAtOthers: false, isEnd: /^[ \t]*$/, lineEnd: /\r\n|\r|\n/g }
/** A carriage return alone is no end of a line. */
const withLineFeeds: Grammar = { ...lenient, lineEnd: /\r?\n/g }

/** Reads a header in each way in which programs read it. Readings with the same result are given once. */
export function readHeaders(text: string): MailHeader[] {
  const readings = [strict, lenient].map((grammar) => readHeader(text, grammar))
  const header = text.slice(0, Math.max(...readings.map(({ bodyAt }) => bodyAt)))
  if (/\r(?!\n)/.test(header) && text.includes('\n')) readings.push(readHeader(text, withLineFeeds))
  const seen = new Set<string>()
  return readings.filter((reading) => {
    const key = JSON.stringify(reading)
    return !seen.has(key) && seen.add(key)
  })
}

function readHeader(text: string, { isField, endsAtOthers, isEnd, lineEnd }: Grammar): MailHeader {
  const fields: string[] = []
  let at = 0
  let bodyAt = text.length
  for (const line of splitLines(text, lineEnd)) {
    const isBlank = isEnd.test(line.text)
    const isFolded = /^[ \t]/.test(line.text)
    if (isBlank || (endsAtOthers && !isFolded && !isField.test(line.text))) {
      bodyAt = isBlank ? line.next : at
      break
    }
    if (isFolded && fields.length > 0) fields[fields.length - 1] += line.text
    else if (isField.test(line.text)) fields.push(line.text)
    at = line.next
  }
  const values = (name: RegExp) => fields.filter((field) => name.test(field)).map((field) => toValue(field))
  const dispositions = values(/^content-disposition[ \t]*:/i)
  const types = values(/^content-type[ \t]*:/i)
  const encodings = values(/^content-transfer-encoding[ \t]*:/i)
  return {
    types,
    encodings,
    fileName: findName([...dispositions, ...types], ['filename', 'name']),
    bodyAt,
    isMail: types.length + encodings.length + dispositions.length > 0 || fields.some((field) => mailField.test(field)),
  }
}

/** The value of a field, with each run of blanks as one. Values have at most a few hundred characters. */
const toValue = (field: string) =>
  field
    .slice(field.indexOf(':') + 1, maxFieldBytes)
    .replace(/\s+/g, ' ')
    .trim()

const maxFieldBytes = 65_536

const mailField = /^(?:received|return-path|from|to|subject|date|message-id|mime-version|path|newsgroups)[ \t]*:/i

function* splitLines(text: string, lineEnd: RegExp): Generator<{ text: string; next: number }> {
  let at = 0
  for (const match of text.matchAll(lineEnd)) {
    const next = match.index + match[0].length
    yield { text: text.slice(at, match.index), next }
    at = next
  }
  if (at < text.length) yield { text: text.slice(at), next: text.length }
}

/** Removes comments, which stand in round brackets outside of quotes and may be nested. */
function withoutComments(value: string): string {
  let depth = 0
  let isQuoted = false
  let kept = ''
  for (let i = 0; i < value.length; i++) {
    const char = value[i] as string
    if (char === '\\' && (isQuoted || depth > 0)) {
      if (depth === 0) kept += value.slice(i, i + 2)
      i++
      continue
    }
    if (char === '"' && depth === 0) isQuoted = !isQuoted
    if (char === '(' && !isQuoted) depth++
    if (depth === 0) kept += char
    if (char === ')' && !isQuoted && depth > 0) depth--
  }
  return kept
}

type Parameter = { name: string; value: string }

/** The parameters of a header value as written, with the numbers of their continuations. */
function listParameters(value: string): Parameter[] {
  const found = value.matchAll(/(?:;|\s|^)\s*([\w!#$%&'*+.^`{}|~-]+?)\s*=\s*(?:"((?:[^"\\]|\\[\s\S])*)"?|([^;]*))/g)
  return [...found].map(([, name = '', quoted, plain = '']) => ({
    name: name.toLowerCase(),
    value: quoted === undefined ? plain.trim() : quoted.replace(/\\([\s\S])/g, '$1'),
  }))
}

/** Joins the continuations of a parameter (RFC 2231), and decodes the ones that say that they are encoded. */
function joinParameter(parameters: Parameter[], wanted: string): string | undefined {
  const parts = parameters
    .map(({ name, value }) => ({ match: /^([^*]+)(?:\*(\d+))?(\*)?$/.exec(name), value }))
    .filter(({ match }) => match?.[1] === wanted && (match[2] !== undefined || match[3] !== undefined))
    .map(({ match, value }) => ({ order: Number(match?.[2] ?? 0), isEncoded: match?.[3] !== undefined, value }))
    .toSorted((a, b) => a.order - b.order)
  if (parts.length === 0) return undefined
  return parts
    .map(({ value, isEncoded, order }) => {
      if (!isEncoded) return value
      const text = order === 0 ? value.replace(/^[^']*'[^']*'/, '') : value
      return text.replace(/%([0-9a-f]{2})/gi, (_, hex) => String.fromCharCode(Number.parseInt(hex, 16)))
    })
    .join('')
}

function findName(values: string[], wanted: string[]): string | undefined {
  for (const name of wanted) {
    for (const value of values) {
      const parameters = listParameters(value)
      const found = parameters.find((parameter) => parameter.name === name)?.value ?? joinParameter(parameters, name)
      if (found !== undefined && found !== '') return Buffer.from(found, 'latin1').toString('utf8')
    }
  }
  return undefined
}

/** Every boundary that some program reads out of a Content-Type. */
export function listBoundaries(type: string): string[] {
  const found = new Set<string>()
  for (const value of [withoutComments(type), type]) {
    const parameters = listParameters(value)
    for (const { name, value } of parameters) {
      if (name !== 'boundary') continue
      found.add(value)
      // Programs differ in whether a token ends at a blank, and in whether single quotes belong to it.
      found.add(/^[^\s;(]*/.exec(value)?.[0] ?? '')
      found.add(value.replace(/^'(.*)'$/, '$1'))
    }
    const joined = joinParameter(parameters, 'boundary')
    if (joined !== undefined) found.add(joined)
    const naive = /boundary\s*=\s*"?([^";\r\n]*)/i.exec(value)?.[1]
    if (naive !== undefined) found.add(naive.trimEnd())
  }
  return [...found].filter((boundary) => boundary.length <= maxBoundaryBytes)
}

/** Boundaries have at most 70 characters; programs take longer ones. */
const maxBoundaryBytes = 1000

/** The type as most programs name it, such as `text/plain`, in lower case. */
export const toTypeName = (type: string): string =>
  /^[^\s;]*/.exec(
    withoutComments(type)
      .trim()
      .toLowerCase()
      .replace(/\s*\/\s*/, '/'),
  )?.[0] ?? ''

export type Decoding = 'none' | 'base64' | 'quoted-printable' | 'encoded-text'

/** Every decoding that some program chooses for a Content-Transfer-Encoding. */
export function listDecodings(encoding: string): Decoding[] {
  const name = withoutComments(encoding).trim().toLowerCase()
  if (/^(?:|7-?bit|8-?bit|binary|none)$/.test(name)) return ['none']
  if (name === 'base64' || name === 'quoted-printable') return [name]
  const found: Decoding[] = ['none']
  // Programs that know no such name take the content as it is; others look for a known name in it.
  if (/base-?64/.test(name)) found.push('base64')
  if (/quoted|qp/.test(name)) found.push('quoted-printable')
  if (/uu|yenc/.test(name)) found.push('encoded-text')
  return found
}

import { styleText } from 'node:util'

type LogLine = {
  level: string
  time: string
  region: string
  msg?: string
  err?: LoggedError
  [field: string]: unknown
}
type LoggedError = { message: string; cause?: LoggedError }

/** Values that say more to programs than to people are cut at this length. */
const maxValueLength = 200
/** Control characters, which could move the cursor, and characters that hide or reorder text. */
const unprintable = /[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]/gu

/** Turns a JSON line of the log into a line for people. Stack traces are in the JSON format only. */
export function toTextLine(json: string): string {
  const { level, time, region: _region, msg = '', err, ...fields } = JSON.parse(json) as LogLine
  const details = Object.entries(fields).map(([name, value]) => `${toWords(name)} ${toValue(value)}`)
  const text = `${msg}${toReasons(err)}${details.length === 0 ? '' : ` (${details.join(', ')})`}`
  return `${paint('dim', toClock(time))} ${toMark(level)}${toPrintable(text)}\n`
}

/** Replaces what a terminal would obey instead of show, such as `<U+001B>` for Escape. */
export const toPrintable = (text: string): string =>
  text.replaceAll(unprintable, (character) => `<U+${toHex(character.codePointAt(0) ?? 0)}>`)

const toHex = (codePoint: number) => codePoint.toString(16).toUpperCase().padStart(4, '0')

function toMark(level: string): string {
  if (level === 'warn') return `${paint('yellow', 'warning')} `
  if (level === 'error' || level === 'fatal') return `${paint('red', 'error')} `
  return level === 'debug' ? `${paint('dim', 'debug')} ` : ''
}

/** Colours belong on a terminal: `styleText` leaves them out elsewhere, and where NO_COLOR asks for that. */
const paint = (style: 'dim' | 'yellow' | 'red', text: string) => styleText(style, text, { stream: process.stderr })

/** `14:05:09`, in the time zone of the machine. */
const toClock = (time: string) => new Date(time).toTimeString().slice(0, 8)

const toReasons = (error: LoggedError | undefined): string =>
  error === undefined ? '' : `: ${error.message}${toReasons(error.cause)}`

/** `auditRow` is `audit row`. */
const toWords = (name: string) => name.replaceAll(/[A-Z]/g, (letter) => ` ${letter.toLowerCase()}`)

function toValue(value: unknown): string {
  const text = typeof value === 'string' ? value : (JSON.stringify(value) ?? '')
  return text.length > maxValueLength ? `${text.slice(0, maxValueLength)}…` : text
}

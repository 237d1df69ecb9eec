/**
 * Text of strangers, such as file names, for a terminal: what would move the cursor, colour, ring or turn the order of
 * letters is shown as an escape.
 */
export const toInert = (text: string): string => (harmless.test(text) ? text : text.replace(hazards, toEscape))

/** JSON leaves some of it as it is; as an escape it means the same. */
export const toInertJson = (value: unknown): string =>
  JSON.stringify(value).replace(hazards, (char) => `\\u${char.charCodeAt(0).toString(16).padStart(4, '0')}`)

const harmless = /^[\x20-\x7e]*$/
/** Controls of ASCII and of Latin-1, marks of direction, line separators, and halves of characters. */
const hazards =
  /[\x00-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ufeff]|[\ud800-\udbff](?![\udc00-\udfff])|(?<![\ud800-\udbff])[\udc00-\udfff]/g

const named: Record<string, string> = { '\n': '\\n', '\r': '\\r', '\t': '\\t' }

function toEscape(char: string): string {
  const code = char.charCodeAt(0)
  const hex = code.toString(16)
  return named[char] ?? (code < 256 ? `\\x${hex.padStart(2, '0')}` : `\\u{${hex}}`)
}

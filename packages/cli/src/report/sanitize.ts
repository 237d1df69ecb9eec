/**
 * Escapes the characters in untrusted text, such as file names, with which it could control a terminal: move the cursor,
 * change colours, ring the bell or reverse the order of letters.
 */
export const sanitize = (text: string): string => (printable.test(text) ? text : text.replace(controls, toEscape))

/** JSON in which the same characters are escaped, some of which JSON.stringify leaves as they are. */
export const sanitizeJson = (value: unknown): string =>
  JSON.stringify(value).replace(controls, (char) => `\\u${char.charCodeAt(0).toString(16).padStart(4, '0')}`)

const printable = /^[\x20-\x7e]*$/
/** Control characters of ASCII and Latin-1, direction marks, line separators, and unpaired surrogates. */
const controls =
  /[\x00-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ufeff]|[\ud800-\udbff](?![\udc00-\udfff])|(?<![\ud800-\udbff])[\udc00-\udfff]/g

const shortEscapes: Record<string, string> = { '\n': '\\n', '\r': '\\r', '\t': '\\t' }

function toEscape(char: string): string {
  const code = char.charCodeAt(0)
  const hex = code.toString(16)
  return shortEscapes[char] ?? (code < 256 ? `\\x${hex.padStart(2, '0')}` : `\\u{${hex}}`)
}

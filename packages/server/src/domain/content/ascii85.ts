/** Fewer characters hold no file. */
export const minAscii85Chars = 80
export const ascii85End = '~>'

const data = 1
const blank = 2

/** The kind of each byte, 0 for those that Ascii85 does not have. `z` and `y` stand for four bytes each. */
export const ascii85Kinds = new Uint8Array(256)
for (let byte = 0x21; byte <= 0x75; byte++) ascii85Kinds[byte] = data
for (const char of 'yz') ascii85Kinds[char.charCodeAt(0)] = data
for (const char of ' \t\r\n\v\f') ascii85Kinds[char.charCodeAt(0)] = blank

/** Whether a text has as many characters of Ascii85 as a file takes in front of the mark that ends it. */
export function hasAscii85(text: string): boolean {
  for (let end = text.indexOf(ascii85End); end !== -1; end = text.indexOf(ascii85End, end + 1)) {
    let chars = 0
    for (let at = end - 1; at >= 0 && chars < minAscii85Chars; at--) {
      const kind = ascii85Kinds[text.charCodeAt(at)]
      if (kind === 0) break
      if (kind === data) chars++
    }
    if (chars >= minAscii85Chars) return true
  }
  return false
}

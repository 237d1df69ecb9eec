/**
 * Characters that hide or reorder the text around them, or cannot be seen: control characters, marks of direction,
 * fillers and tags. A line break and a tab are what they seem.
 */
const invisible = /(?![\n\t])[\p{Cc}\p{Cf}\p{Zl}\p{Zp}\p{Default_Ignorable_Code_Point}\u2800]/gu
/** Parts of one visible sign: an emoji of several, and letters of scripts that join. */
const joined =
  /(?<=\p{Extended_Pictographic}|\p{Emoji_Modifier}|\ufe0f)(?:\u200d|\ufe0e|\ufe0f)|(?<=\p{L}\p{M}*)[\u200c\u200d](?=\p{L})/gu

/** Shows each invisible character as its number, such as `<U+202E>`: names of files come from strangers. */
export function markInvisible(text: string): string {
  const kept = new Set([...text.matchAll(joined)].filter(isForeign(text)).map(({ index }) => index))
  return text.replaceAll(invisible, (character, index: number) =>
    kept.has(index) ? character : `<U+${character.codePointAt(0)?.toString(16).toUpperCase().padStart(4, '0')}>`,
  )
}

/** Between letters of ASCII, a joiner joins nothing and only hides. */
const isForeign =
  (text: string) =>
  ({ index }: { index: number }) =>
    !/[\x20-\x7e]/.test(text[index - 1] ?? ' ')

/** Parses JSON of the service, with every invisible character of its texts marked. */
export const parseMarked = (json: string): unknown =>
  JSON.parse(json, (_key, value) => (typeof value === 'string' ? markInvisible(value) : value))

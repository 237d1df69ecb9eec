const colon = 0x3a
const maxNameBytes = 76

/** The position of the first header line: some programs skip a byte order mark and empty lines before it. */
export function skipMailStart(head: Buffer): number {
  let at = head[0] === 0xef && head[1] === 0xbb && head[2] === 0xbf ? 3 : 0
  while (at < head.length && (head[at] === 0x0a || head[at] === 0x0d || head[at] === 0x20)) at++
  if (head[at] === 0x3e && startsWithFrom(head, at + 1)) at++
  return at
}

/**
 * Whether the head is a mailbox, or a header of mail with a field of MIME. Text without such a field holds no other
 * content, except in an encoding that the text itself shows.
 */
export function isMailHead(head: Buffer): boolean {
  const start = skipMailStart(head)
  const isMailbox = startsWithFrom(head, start)
  return (isMailbox || hasField(head, start)) && hasMimeField(head, start, isMailbox)
}

/** Looks at the start of each line, up to the empty line behind the header unless the text is a mailbox. */
function hasMimeField(head: Buffer, start: number, isMailbox: boolean): boolean {
  let isLineStart = true
  for (let at = start; at < head.length; at++) {
    const byte = head[at] as number
    if (byte === lineFeed || byte === carriageReturn) {
      if (isLineStart && !isMailbox) return false
      if (byte === carriageReturn && head[at + 1] === lineFeed) at++
      isLineStart = true
    } else {
      // Both cases of the letter c.
      if (isLineStart && (byte | 0x20) === 0x63 && mimeField.test(head.toString('latin1', at, at + 40))) return true
      isLineStart = false
    }
  }
  return false
}

const lineFeed = 0x0a
const carriageReturn = 0x0d
const mimeField = /^content-(?:type|transfer-encoding|disposition)[ \t]*:/i

const startsWithFrom = (head: Buffer, at: number) =>
  head[at] === 0x46 && head[at + 1] === 0x72 && head[at + 2] === 0x6f && head[at + 3] === 0x6d && head[at + 4] === 0x20

/** Whether a line of the form `Name: value` begins at the position. */
function hasField(head: Buffer, start: number): boolean {
  const end = Math.min(head.length, start + maxNameBytes)
  for (let at = start; at < end; at++) {
    const byte = head[at] as number
    if (byte === colon) return at > start
    if (byte <= 0x20 || byte > 0x7e) return (byte === 0x20 || byte === 0x09) && at > start && head[at + 1] === colon
  }
  return false
}

/**
 * Looks over a multipart body for a boundary that is not a whole delimiter line. The parser takes a line that merely
 * begins like the boundary for the end of the part, and the file would be cut short without a word.
 */
export function newDelimiterCheck(boundary: string) {
  const needle = Buffer.from(`\r\n--${boundary}`, 'latin1')
  /** The last bytes seen: a delimiter may lie across two chunks. It begins as if a line had just ended. */
  let tail = Buffer.from('\r\n')
  /** Bytes after a delimiter, until it is clear what they are. */
  let after: Buffer | undefined
  let closed = false

  return {
    /** False when the body is broken. */
    add(chunk: Buffer): boolean {
      if (closed) return true
      let text = Buffer.concat([tail, chunk])
      for (;;) {
        if (after !== undefined) {
          text = Buffer.concat([after, text])
          const line = judge(text)
          if (line === 'broken') return false
          if (line === 'closing') {
            closed = true
            return true
          }
          if (line === 'unclear') {
            after = text
            tail = Buffer.alloc(0)
            return true
          }
          after = undefined
        }
        const at = text.indexOf(needle)
        if (at === -1) {
          tail = text.subarray(Math.max(0, text.length - needle.length + 1))
          return true
        }
        after = Buffer.alloc(0)
        text = text.subarray(at + needle.length)
      }
    },
  }
}

/** What follows a boundary: `--` closes the body, blanks and a line end open a part, anything else is no delimiter. */
function judge(text: Buffer): 'opening' | 'closing' | 'unclear' | 'broken' {
  const found = /^(?:(--)|[ \t]{0,256}(\r\n))/.exec(text.toString('latin1', 0, 260))
  if (found !== null) return found[1] === undefined ? 'opening' : 'closing'
  return /^(?:-|[ \t]{0,256}\r?)$/.test(text.toString('latin1', 0, 260)) ? 'unclear' : 'broken'
}

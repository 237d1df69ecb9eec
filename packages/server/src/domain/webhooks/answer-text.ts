const maxBytes = 1024

/** The beginning of an answer as text that can be stored: well-formed, without NUL, at most 1 KB however it is broken. */
export function toAnswerText(answer: Buffer): string {
  const text = decodeBeginning(answer)
  // PostgreSQL stores no NUL. A byte that is no UTF-8 becomes a character of three, so the text is cut again.
  return text === '' ? '' : decodeBeginning(Buffer.from(text.replaceAll('\0', '\u{fffd}')))
}

/** A character that the cut divides is left out, not replaced. */
const decodeBeginning = (bytes: Buffer) =>
  new TextDecoder('utf-8', { ignoreBOM: true }).decode(bytes.subarray(0, maxBytes), { stream: true })

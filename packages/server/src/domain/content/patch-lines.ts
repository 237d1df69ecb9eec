/** The lines with which a change begins in a unified, a context and a normal diff, and binary data in one of Git. */
const unified = /@@ -\d{1,9}(?:,\d{1,9})? \+\d/y
const context = /\*\*\* \d{1,9}(?:,\d{1,9})? \*\*\*\*/y
const normal = /\d{1,9}(?:,\d{1,9})?[acd]\d{1,9}(?:,\d{1,9})?\r?\n[<>] /y
export const binaryPatch = 'GIT binary patch'

const blank = 0x20
const star = 0x2a
const less = 0x3c
const greater = 0x3e
const letterG = 0x47

/** Whether a change of a unified diff begins in the text, at any indent. The search for a rare sign takes little time. */
export function hasUnifiedDiff(text: string): boolean {
  for (let at = text.indexOf('@@ -'); at !== -1; at = text.indexOf('@@ -', at + 1))
    if (matches(unified, text, at)) return true
  return false
}

/** Whether a line begins with a sign at which `isPatchLine` looks. This tells most lines. */
export function mayBeginPatch(text: string, start: number): boolean {
  const first = text.charCodeAt(start)
  return first === star || first === letterG || first === less || first === greater
}

/** Whether a change of another diff, or binary data of Git, begins in this line. */
export function isPatchLine(text: string, start: number): boolean {
  const first = text.charCodeAt(start)
  if (first === star) return matches(context, text, start)
  if (first === letterG) return text.startsWith(binaryPatch, start)
  if ((first !== less && first !== greater) || text.charCodeAt(start + 1) !== blank || start < 2) return false
  // The first line that is added or removed stands behind the one that tells its number.
  return matches(normal, text, text.lastIndexOf('\n', start - 2) + 1) && normal.lastIndex === start + 2
}

function matches(pattern: RegExp, text: string, at: number): boolean {
  pattern.lastIndex = at
  return pattern.test(text)
}

/** The name of a finding for which the engine gives none. */
export const unnamedThreat = 'UnnamedThreat'

/** Longer texts and more lines of an engine are not matched, because patterns may take quadratic time. */
export const maxMatchedLength = 1000
const maxMatchedLines = 300

/**
 * Lists the names that the operator's pattern finds, line by line. `isReadable` is false when the output has a line that
 * is too long, or too many lines: such output does not say that nothing was found.
 */
export function listMatchedNames(output: string, { source }: RegExp): { names: string[]; isReadable: boolean } {
  const lines = output.split('\n').filter((line) => line.trim() !== '')
  const readable = lines.slice(0, maxMatchedLines).filter(({ length }) => length <= maxMatchedLength)
  const pattern = new RegExp(source, 'gmu')
  const names = readable.flatMap((line) => [...line.matchAll(pattern)].map(toMatchedName))
  return { names: [...new Set(names)], isReadable: readable.length === lines.length }
}

/** The name that a match of the operator's pattern gives: its first group, or all of it. */
export const toMatchedName = (match: RegExpExecArray): string => (match[1] ?? match[0]).trim() || unnamedThreat

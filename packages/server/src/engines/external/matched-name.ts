/** The name of a finding for which the engine gives none. */
export const unnamedThreat = 'UnnamedThreat'

/** The name that a match of the operator's pattern gives: its first group, or all of it. */
export const toMatchedName = (match: RegExpExecArray): string => (match[1] ?? match[0]).trim() || unnamedThreat

import type { Refused } from '../requests.ts'

export type RuleText = { file: string; text: Buffer }

type YaraResult = { findings: string[]; limited: boolean }

export type RuleSet = {
  rules: number
  /** Returns the names of the matching rules, without private ones. Blocks until the scan is done. */
  scan(content: Buffer): YaraResult
  free(): void
}

export type Backend = {
  version: string
  build: string
  /** Compiles the files, each in a namespace of its own. Returns the first one that does not compile instead. */
  compile(files: RuleText[]): RuleSet | Refused
  needsReplacement(): boolean
}

/**
 * Variables that public rule sets expect from a scanner of file systems. They are empty, because content has no name
 * here; without them every file that uses one would be refused.
 */
export const externals = ['filename', 'filepath', 'extension', 'filetype', 'owner']

/**
 * Compiles the files together. When that fails, each file is tried alone, because a libyara compiler is unusable after
 * its first error, and the valid files are compiled together.
 */
export function compileValidFiles(backend: Backend, files: RuleText[]): { set: RuleSet; refused: Refused[] } {
  const whole = backend.compile(files)
  if (isSet(whole)) return { set: whole, refused: [] }

  const refused: Refused[] = []
  let validFiles = files.filter((file) => {
    const result = backend.compile([file])
    if (isSet(result)) result.free()
    else refused.push(result)
    return isSet(result)
  })
  for (;;) {
    const result = backend.compile(validFiles)
    if (isSet(result)) return { set: result, refused }
    refused.push(result)
    const rest = validFiles.filter(({ file }) => file !== result.file)
    if (rest.length === validFiles.length) throw new Error(`${result.file}: ${result.reason}`)
    validFiles = rest
  }
}

const isSet = (outcome: RuleSet | Refused): outcome is RuleSet => 'scan' in outcome

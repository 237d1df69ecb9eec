/** The service sends the rule files with `add`, then `compile`, then one `scan` after the other. */
export type Request =
  | { kind: 'add'; file: string; bytes: number }
  | { kind: 'compile' }
  | { kind: 'scan'; bytes: number }

export type Compiled = {
  /** `YARA 4.2.3 (libyara)` */
  version: string
  /** Tells builds of the same version apart. */
  build: string
  rules: number
  refused: Refused[]
}

type Scanned = {
  /** How many bytes were scanned: the findings count only when it is all of them. */
  bytes: number
  findings: string[]
  /** The scan was stopped, or matches were not counted: a rule that did not match might have. */
  limited: boolean
  /** The process holds so much memory that it should be replaced. */
  needsReplacement: boolean
}

export type Answer = { added: number } | Compiled | Scanned | { abandoned: true } | { failure: string }

/** A rule file that cannot be used. */
export type Refused = { file: string; reason: string }

export type BackendName = 'libyara' | 'yara-x'

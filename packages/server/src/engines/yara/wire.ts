/** What a YARA process is asked. */
export type Request =
  | { ask: 'add'; file: string; bytes: number }
  | { ask: 'compile' }
  | { ask: 'scan'; bytes: number; timeoutMs: number }

type Added = { added: number }
export type Compiled = {
  /** `YARA 4.2.3 (libyara)` */
  version: string
  /** Tells builds of the same version apart. */
  build: string
  rules: number
  refused: Refused[]
}
type Scanned = {
  /** How many bytes were scanned: only when it is all of them the findings mean anything. */
  bytes: number
  findings: string[]
  /** The scan was given up, or lost count of matches: what was not found may be there. */
  limited: boolean
  /** Better replaced before the next scan: it holds too much memory. */
  worn: boolean
}
export type Answer = Added | Compiled | Scanned | { abandoned: true } | { failure: string }

/** A file of rules that does not compile. */
export type Refused = { file: string; reason: string }

export type BackendName = 'libyara' | 'yara-x'

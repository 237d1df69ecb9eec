/**
 * What goes over the pipe between the service and a YARA process. Each request is a header (length, JSON), then chunks
 * (length, bytes) up to `endOfBody` or `abandoned`; each has exactly one answer (length, JSON). Lengths are 32 bits,
 * little end first.
 */
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

export const endOfBody = 0
export const abandoned = 0xffff_ffff
/** A length beyond these is no length but a fault of ours. */
export const maxHeaderBytes = 65_536
export const maxAnswerBytes = 64 * 1024 * 1024

export function toFrame(value: Request | Answer): Buffer {
  const json = Buffer.from(JSON.stringify(value))
  return Buffer.concat([toLength(json.length), json])
}

export function toLength(bytes: number): Buffer {
  const length = Buffer.allocUnsafe(4)
  length.writeUInt32LE(bytes)
  return length
}

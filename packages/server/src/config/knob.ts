import type { Reader } from './readers.ts'

export type Knob<T> = {
  /** The environment variable; `assay.toml` has it in lower case without the prefix. */
  env: string
  read: Reader<T>
  /** Used when nothing is set. Absent: the setting is optional. */
  fallback?: string
  /** Never shown, and may be given as a file: `<env>_FILE`. */
  secret?: true
  about: string
}

/** Keeps in the type whether there is a fallback, so that a setting with one is never undefined. */
export function knob<T>(row: Knob<T> & { fallback: string }): Knob<T> & { fallback: string }
export function knob<T>(row: Knob<T>): Knob<T>
export function knob<T>(row: Knob<T>): Knob<T> {
  return row
}

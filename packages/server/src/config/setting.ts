import type { Reader } from './readers.ts'

export type SettingDefinition<T> = {
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
export function definition<T>(
  row: SettingDefinition<T> & { fallback: string },
): SettingDefinition<T> & { fallback: string }
export function definition<T>(row: SettingDefinition<T>): SettingDefinition<T>
export function definition<T>(row: SettingDefinition<T>): SettingDefinition<T> {
  return row
}

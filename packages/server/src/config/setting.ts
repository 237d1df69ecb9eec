import type { Reader } from './readers.ts'

export type SettingDefinition<T> = {
  /** The environment variable. In `assay.toml` the name is in lower case and without the prefix ASSAY_. */
  env: string
  read: Reader<T>
  /** Used when nothing is set. A setting without a fallback is optional. */
  fallback?: string
  /** Secrets are never shown, and can be read from a file: `<env>_FILE`. */
  secret?: true
  about: string
}

type Row = Omit<SettingDefinition<never>, 'env' | 'read'>

/** Keeps in the type whether there is a fallback, so that the value of a setting with one is never undefined. */
export function setting<T, R extends Row>(env: string, read: Reader<T>, row: R): SettingDefinition<T> & R {
  return { env, read, ...row }
}

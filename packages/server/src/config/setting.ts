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

/** The kernel takes no longer paths for unix sockets. */
const maxSocketPathBytes = 107

/** An address to listen on: an address and a port, a port on 127.0.0.1, or the path of a unix socket. */
export const listenAddress: Reader<{ host: string; port: number } | { path: string }> = (value) => {
  const [, path] = /^unix:(?:\/\/)?(\/(?!\/).*[^/])$/.exec(value) ?? []
  if (path !== undefined) {
    if (Buffer.byteLength(path) > maxSocketPathBytes) {
      throw new Error(`must have a path of at most ${maxSocketPathBytes} bytes, the limit of Linux for unix sockets`)
    }
    return { path }
  }
  const [, v6, name, digits] = /^(?:tcp:\/\/)?(?:(?:\[([0-9a-f:.]+)\]|([\w.-]+)):)?(\d{1,5})$/i.exec(value) ?? []
  if (digits === undefined || Number(digits) > 65535) {
    throw new Error('must be a port such as 3310, an address such as tcp://0.0.0.0:3310, or unix:/run/assay/clamd.sock')
  }
  return { host: v6 ?? name ?? '127.0.0.1', port: Number(digits) }
}

/** Votes that a verdict policy needs for a threat: 1 for `any`, 2 for `quorum 2`; undefined for other text. */
export function findQuorum(policy: string): number | undefined {
  if (policy === 'any') return 1
  const [, digit] = /^quorum ([2-9])$/.exec(policy) ?? []
  return digit === undefined ? undefined : Number(digit)
}

/** Reads how many engines must agree on a threat. */
export const verdictPolicy: Reader<string> = (value) => {
  if (findQuorum(value) === undefined) throw new Error('must be any, or quorum and a number from 2 to 9: quorum 2')
  return value
}

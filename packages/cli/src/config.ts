import { mkdirSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import { homedir } from 'node:os'
import { dirname, join } from 'node:path'
import { type Client, newClient } from '@assay/client'
import { toMessage, UserError } from './user-errors.ts'

export type Config = { url: string; apiKey: string }

export const toConfigPath = (env: NodeJS.ProcessEnv): string =>
  join(findAbsolute(env.XDG_CONFIG_HOME) ?? join(homedir(), '.config'), 'assay', 'config.json')

/** Directory for state that survives a restart. */
export const toStateDir = (env: NodeJS.ProcessEnv): string =>
  join(findAbsolute(env.XDG_STATE_HOME) ?? join(homedir(), '.local', 'state'), 'assay')

/**
 * Takes address and key from the environment, or else from the file that `login` wrote. A stored key is sent only to
 * the address it was stored with.
 */
export function getConfig(env: NodeJS.ProcessEnv): Config {
  const fromEnvironment = { url: findText(env.ASSAY_URL), apiKey: findText(env.ASSAY_API_KEY) }
  const stored = fromEnvironment.url && fromEnvironment.apiKey ? undefined : findStored(env)
  const url = fromEnvironment.url ?? stored?.url
  if (url === undefined) {
    throw new UserError('No service is configured. Run assay-scan login, or set ASSAY_URL and ASSAY_API_KEY.')
  }
  const isStoredUrl = stored !== undefined && normalizeUrl(url) === normalizeUrl(stored.url)
  if (fromEnvironment.apiKey === undefined && stored !== undefined && !isStoredUrl) {
    throw new UserError(`The stored API key is for ${stored.url}, not for ${url}. Set ASSAY_API_KEY as well.`)
  }
  const apiKey = fromEnvironment.apiKey ?? stored?.apiKey
  if (apiKey === undefined) {
    throw new UserError('No API key is configured. Run assay-scan login, or set ASSAY_API_KEY.')
  }
  return { url, apiKey }
}

function findStored(env: NodeJS.ProcessEnv): Config | undefined {
  const path = toConfigPath(env)
  const invalid = new UserError(`${path} is not a valid configuration file. Run assay-scan login to replace it.`)
  let text: string
  try {
    text = readFileSync(path, 'utf8')
  } catch (error) {
    if (error instanceof Error && 'code' in error && (error.code === 'ENOENT' || error.code === 'ENOTDIR'))
      return undefined
    throw new UserError(`Cannot read ${path}: ${toMessage(error)}.`)
  }
  let value: unknown
  try {
    value = JSON.parse(text)
  } catch {
    throw invalid
  }
  const { url, api_key: apiKey } = (value ?? {}) as Record<string, unknown>
  if (typeof url !== 'string' || typeof apiKey !== 'string') throw invalid
  return { url, apiKey }
}

/** Stores address and key, readable by the owner only, and returns the path. */
export function storeConfig(env: NodeJS.ProcessEnv, { url, apiKey }: Config): string {
  const path = toConfigPath(env)
  try {
    mkdirSync(dirname(path), { recursive: true, mode: 0o700 })
    writePrivateFile(path, `${JSON.stringify({ url, api_key: apiKey }, null, 2)}\n`)
  } catch (error) {
    throw new UserError(`Cannot write ${path}: ${toMessage(error)}.`)
  }
  return path
}

/** Writes a file with mode 0600 under another name and renames it, so that no reader sees a partial file. */
export function writePrivateFile(path: string, text: string) {
  const draft = `${path}.${process.pid}`
  try {
    writeFileSync(draft, text, { mode: 0o600, flag: 'wx' })
    renameSync(draft, path)
  } catch (error) {
    rmSync(draft, { force: true })
    throw error
  }
}

export function openClient({ url, apiKey }: Config): Client {
  try {
    return newClient({ apiKey, baseUrl: url })
  } catch (error) {
    // The client names its own options, which the user knows by other names.
    if (!(error instanceof TypeError)) throw error
    throw new UserError(error.message.replace('baseUrl', 'ASSAY_URL').replace('apiKey', 'The API key'))
  }
}

const findText = (text: string | undefined) => (text === undefined || text.trim() === '' ? undefined : text.trim())

const normalizeUrl = (url: string) => url.replace(/\/+$/, '').toLowerCase()

/** The XDG specification requires programs to ignore relative paths. */
const findAbsolute = (path: string | undefined) => (path?.startsWith('/') ? path : undefined)

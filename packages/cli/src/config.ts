import { mkdirSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import { homedir } from 'node:os'
import { dirname, join } from 'node:path'
import { type Client, newClient } from '@assay/client'
import { Mistake } from './mistake.ts'

/** Which service, and whose key. */
export type Config = { url: string; apiKey: string }

export const toConfigPath = (env: NodeJS.ProcessEnv): string =>
  join(isAbsolute(env.XDG_CONFIG_HOME) ?? join(homedir(), '.config'), 'assay', 'config.json')

/** Where what is remembered between runs is kept. */
export const toStateDir = (env: NodeJS.ProcessEnv): string =>
  join(isAbsolute(env.XDG_STATE_HOME) ?? join(homedir(), '.local', 'state'), 'assay')

/** From the environment, or as it was stored by `login`. A stored key goes to the address it was stored with alone. */
export function getConfig(env: NodeJS.ProcessEnv): Config {
  const given = { url: toGiven(env.ASSAY_URL), apiKey: toGiven(env.ASSAY_API_KEY) }
  const stored = given.url && given.apiKey ? undefined : findStored(env)
  const url = given.url ?? stored?.url
  if (url === undefined) throw new Mistake('Which service? Run assay-scan login, or set ASSAY_URL and ASSAY_API_KEY.')
  const isStoredUrl = stored !== undefined && toAddress(url) === toAddress(stored.url)
  if (given.apiKey === undefined && stored !== undefined && !isStoredUrl) {
    throw new Mistake(`The stored key is for ${stored.url}, not for ${url}. Set ASSAY_API_KEY as well.`)
  }
  const apiKey = given.apiKey ?? stored?.apiKey
  if (apiKey === undefined) throw new Mistake('There is no API key. Run assay-scan login, or set ASSAY_API_KEY.')
  return { url, apiKey }
}

function findStored(env: NodeJS.ProcessEnv): Config | undefined {
  const path = toConfigPath(env)
  const broken = new Mistake(`${path} cannot be understood. Run assay-scan login to write it anew.`)
  let text: string
  try {
    text = readFileSync(path, 'utf8')
  } catch (error) {
    if (error instanceof Error && 'code' in error && (error.code === 'ENOENT' || error.code === 'ENOTDIR'))
      return undefined
    throw new Mistake(`${path} cannot be read: ${error instanceof Error ? error.message : String(error)}.`)
  }
  let value: unknown
  try {
    value = JSON.parse(text)
  } catch {
    throw broken
  }
  const { url, api_key: apiKey } = (value ?? {}) as Record<string, unknown>
  if (typeof url !== 'string' || typeof apiKey !== 'string') throw broken
  return { url, apiKey }
}

/** Nobody but the owner can read it, at no moment; and it is there whole or not at all. */
export function store(env: NodeJS.ProcessEnv, { url, apiKey }: Config): string {
  const path = toConfigPath(env)
  try {
    mkdirSync(dirname(path), { recursive: true, mode: 0o700 })
    writePrivately(path, `${JSON.stringify({ url, api_key: apiKey }, null, 2)}\n`)
  } catch (error) {
    throw new Mistake(`${path} cannot be written: ${error instanceof Error ? error.message : String(error)}.`)
  }
  return path
}

export function writePrivately(path: string, text: string) {
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
    // It speaks of its own options.
    if (!(error instanceof TypeError)) throw error
    throw new Mistake(error.message.replace('baseUrl', 'ASSAY_URL').replace('apiKey', 'The API key'))
  }
}

const toGiven = (text: string | undefined) => (text === undefined || text.trim() === '' ? undefined : text.trim())

const toAddress = (url: string) => url.replace(/\/+$/, '').toLowerCase()

/** The XDG specification has others ignored. */
const isAbsolute = (path: string | undefined) => (path?.startsWith('/') ? path : undefined)

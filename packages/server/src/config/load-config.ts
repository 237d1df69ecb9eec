import { readFileSync } from 'node:fs'
import { resolve } from 'node:path'
import { parse as parseToml } from 'smol-toml'
import { hideCredentials } from '../runtime/hide-credentials.ts'
import type { TomlTable } from '../runtime/toml-options.ts'
import { type SettingDefinition, type SettingName, settingDefinitions } from './settings.ts'

type ValueOf<K> = K extends SettingDefinition<infer T> ? (K extends { fallback: string } ? T : T | undefined) : never
export type Config = { readonly [N in SettingName]: ValueOf<(typeof settingDefinitions)[N]> } & {
  /** Engines outside of Assay, in assay.toml only. `openExternalEngines` checks their options. */
  readonly engines: readonly TomlTable[]
  /** Listeners beside those of the settings, in assay.toml only. `readListeners` checks their options. */
  readonly listeners: readonly TomlTable[]
}

export type Setting = { name: SettingName; env: string; text: string | undefined; origin: string; secret: boolean }
export type Loaded = { config: Config; settings: Setting[]; warnings: string[] }

/** All mistakes of a configuration, so that they can be corrected at once. */
export class ConfigMistakes extends Error {
  readonly mistakes: string[]

  constructor(mistakes: string[]) {
    super(mistakes.join('\n'))
    this.mistakes = mistakes
  }
}

export function loadConfig(env: NodeJS.ProcessEnv, tomlPath = env.ASSAY_CONFIG || 'assay.toml'): Loaded {
  const mistakes: string[] = []
  const { texts: toml, tables } = readToml(tomlPath, Boolean(env.ASSAY_CONFIG), mistakes)
  const settings: Setting[] = []
  const values: Record<string, unknown> = { ...tables }

  for (const [name, definition] of Object.entries(settingDefinitions) as [SettingName, SettingDefinition<unknown>][]) {
    try {
      const { text, origin } = findText(definition, env, toml, tomlPath)
      settings.push({ name, env: definition.env, text, origin, secret: definition.secret === true })
      values[name] = text === undefined ? undefined : readValue(definition, text, origin)
    } catch (error) {
      mistakes.push((error as Error).message)
    }
  }

  mistakes.push(...checkCombinations(values as Partial<Config>))
  if (mistakes.length > 0) throw new ConfigMistakes(mistakes)
  return { config: values as Config, settings, warnings: findUnknownVariables(env) }
}

/** The value of a setting as an operator may see it: without secrets, and without passwords and tokens in URLs. */
export function toShownValue({ text, secret }: Setting): string | null {
  if (text === undefined || text === '') return null
  return secret ? '(hidden)' : hideCredentials(text)
}

const tomlName = (definition: SettingDefinition<unknown>) => definition.env.slice('ASSAY_'.length).toLowerCase()

/** Precedence: the environment variable, the file of a secret, assay.toml, the default. */
function findText(
  definition: SettingDefinition<unknown>,
  env: NodeJS.ProcessEnv,
  toml: Map<string, string>,
  tomlPath: string,
) {
  const envText = env[definition.env]
  // Container tools pass a variable that is not set as an empty one.
  if (envText !== undefined && envText !== '') return { text: envText, origin: definition.env }
  const file = env[`${definition.env}_FILE`]
  if (definition.secret === true && file !== undefined && file !== '') {
    return { text: readSecretFile(file, `${definition.env}_FILE`), origin: `${definition.env}_FILE` }
  }
  const tomlText = toml.get(tomlName(definition))
  if (tomlText !== undefined) return { text: tomlText, origin: tomlPath }
  return { text: definition.fallback, origin: definition.fallback === undefined ? 'not set' : 'default' }
}

function readValue(definition: SettingDefinition<unknown>, text: string, origin: string): unknown {
  try {
    return definition.read(text)
  } catch (error) {
    // A URL may contain credentials even where none are allowed.
    const isSecret = definition.secret === true || /:\/\/[^/?#]*@/.test(text)
    const given = isSecret ? 'a value that is not shown' : JSON.stringify(hideCredentials(text))
    throw new Error(`${definition.env} ${(error as Error).message}. Given: ${given} (from ${origin}).`)
  }
}

function readSecretFile(path: string, variable: string): string {
  try {
    return readFileSync(path, 'utf8').replace(/\r?\n$/, '')
  } catch (error) {
    throw new Error(`${variable} names a file that cannot be read: ${(error as Error).message}.`)
  }
}

type Toml = { texts: Map<string, string>; tables: Record<TableName, TomlTable[]> }

function readToml(path: string, required: boolean, mistakes: string[]): Toml {
  const toml: Toml = { texts: new Map(), tables: { engines: [], listeners: [] } }
  let table: Record<string, unknown>
  let text: string
  try {
    text = readFileSync(path, 'utf8')
    table = parseToml(text)
  } catch (error) {
    const missing = (error as NodeJS.ErrnoException).code === 'ENOENT'
    if (!missing || required) mistakes.push(`${resolve(path)} cannot be read: ${(error as Error).message.trim()}`)
    return toml
  }
  for (const name of Object.keys(toml.tables) as TableName[]) {
    try {
      toml.tables[name] = readTables(name, { path, text, value: table[name] })
    } catch (error) {
      mistakes.push((error as Error).message)
    }
  }
  const names = new Set(Object.values(settingDefinitions).map(tomlName))
  for (const [name, value] of Object.entries(table)) {
    if (Object.hasOwn(toml.tables, name)) continue
    if (!names.has(name)) mistakes.push(`${path} sets ${name}, which is not a setting.${suggest(name, names)}`)
    else if (Array.isArray(value)) toml.texts.set(name, value.map(String).join(','))
    else if (typeof value === 'object' && value !== null)
      mistakes.push(`${path} sets ${name} to a table: set it to a value.`)
    else toml.texts.set(name, String(value))
  }
  return toml
}

/** Names of lists of tables in assay.toml, such as `[[engines]]`. */
type TableName = 'engines' | 'listeners'

/**
 * Finds the tables of a name in assay.toml. Their options are checked by the parts that use them, because each kind of
 * engine or listener has its own.
 */
function readTables(name: TableName, toml: { path: string; text: string; value: unknown }): TomlTable[] {
  if (toml.value === undefined) return []
  const isTable = (value: unknown) => typeof value === 'object' && value !== null && !Array.isArray(value)
  if (!Array.isArray(toml.value) || !toml.value.every(isTable)) {
    const must = `must be tables: write [[${name}]] on a line, and the options of one of them below it`
    throw new Error(`${toml.path}: ${name} ${must}.`)
  }
  const heading = new RegExp(`^\\s*\\[\\[\\s*${name}\\s*\\]\\]`)
  const lines = toml.text.split('\n').flatMap((line, index) => (heading.test(line) ? [index + 1] : []))
  return toml.value.map((values, index) => ({
    origin: lines[index] === undefined ? toml.path : `${toml.path} line ${lines[index]}`,
    values,
  }))
}

/** Settings that are useful only together, and why. */
const pairs: [SettingName, SettingName, string][] = [
  ['tlsCert', 'tlsKey', 'set both or neither'],
  ['s3AccessKey', 's3SecretKey', 'set both or neither'],
  ['clamdListen', 'clamdListenKey', 'the key belongs to the account that is charged'],
  ['icapListen', 'icapKey', 'the key belongs to the account that is charged'],
  ['ssoIssuer', 'ssoClientId', 'set both or neither'],
]

function checkCombinations(config: Partial<Config>): string[] {
  const mistakes = pairs
    .filter(([first, second]) => (config[first] === undefined) !== (config[second] === undefined))
    .map(
      ([first, second, why]) =>
        `${settingDefinitions[first].env} and ${settingDefinitions[second].env} go together: ${why}.`,
    )
  if (config.databaseDirectUrl !== undefined && config.databaseUrl === undefined) {
    mistakes.push('ASSAY_DATABASE_DIRECT_URL needs ASSAY_DATABASE_URL: it leads to the same database.')
  }
  const roleMistakes = checkRoles(config)
  // With one role only, checkRoles reports a missing master key already.
  if (config.blobs?.at === 's3' && config.masterKey === undefined && roleMistakes.length === 0) {
    mistakes.push(
      'ASSAY_BLOBS names a store that several nodes can share, so ASSAY_MASTER_KEY must be set to the same value on all of them. Create a key with: openssl rand -hex 32',
    )
  }
  if (config.metricsPort !== undefined && config.metricsPort !== 0 && config.metricsPort === config.port) {
    mistakes.push('ASSAY_METRICS_PORT and ASSAY_PORT are the same: set different ports.')
  }
  const listens = (config.clamdListen ?? config.icapListen ?? config.listeners?.[0]) !== undefined
  if (config.roles?.api === false && listens) {
    mistakes.push(
      'ASSAY_CLAMD_LISTEN, ASSAY_ICAP_LISTEN and [[listeners]] need the role api: remove them on this worker.',
    )
  }
  return [...mistakes, ...roleMistakes, ...checkSingleSignOn(config)]
}

/** Combinations that would let in people whom the operator did not mean, or nobody at all. */
function checkSingleSignOn(config: Partial<Config>): string[] {
  const { ssoIssuer, publicUrl, ssoDomains = [], ssoRoles = [], ssoCreate, ssoLink, ssoRequired } = config
  if (ssoIssuer === undefined) {
    return ssoRequired === 'on' ? ['ASSAY_SSO_REQUIRED needs ASSAY_SSO_ISSUER: nobody could sign in.'] : []
  }
  const mistakes: [boolean, string][] = [
    [publicUrl === undefined, 'ASSAY_SSO_ISSUER needs ASSAY_PUBLIC_URL: the issuer sends people back there.'],
    [
      ssoCreate === 'on' && ssoDomains.length === 0,
      'ASSAY_SSO_CREATE=on needs ASSAY_SSO_DOMAINS: name the domains whose people get access.',
    ],
    [
      ssoCreate === 'on' && ssoRoles.length === 0,
      'ASSAY_SSO_CREATE=on needs ASSAY_SSO_ROLES: a person without a role has no access.',
    ],
    [
      ssoLink === 'email' && ssoDomains.length === 0,
      'ASSAY_SSO_LINK=email needs ASSAY_SSO_DOMAINS: name the domains whose addresses the issuer vouches for.',
    ],
  ]
  return mistakes.filter(([isMistake]) => isMistake).map(([, sentence]) => sentence)
}

/** A node with one role works with nodes of the other, so all of them need the same database, content store and key. */
function checkRoles({ roles, blobs, databaseUrl, masterKey }: Partial<Config>): string[] {
  if (roles === undefined || (roles.api && roles.worker)) return []
  const needs = `ASSAY_ROLES=${roles.api ? 'api' : 'worker'} needs`
  return [
    ...(databaseUrl === undefined
      ? [`${needs} a database that all nodes share: set ASSAY_DATABASE_URL to a PostgreSQL server.`]
      : []),
    ...(blobs?.at === 's3'
      ? []
      : [`${needs} a content store that all nodes share: set ASSAY_BLOBS to s3://bucket?endpoint=...&region=....`]),
    ...(masterKey === undefined
      ? [`${needs} a key that all nodes share: set ASSAY_MASTER_KEY to the same 64 hex digits on all nodes.`]
      : []),
  ]
}

/** Variables of clients, which the documents have people export in the terminal where they also run commands. */
const clientVariables = ['ASSAY_URL', 'ASSAY_API_KEY', 'ASSAY_WEBHOOK_SECRET']

/**
 * Unknown variables are not mistakes: other programs may use the prefix, and settings may be those of a newer version.
 */
function findUnknownVariables(env: NodeJS.ProcessEnv): string[] {
  const names = new Set(['ASSAY_CONFIG', ...clientVariables])
  for (const definition of Object.values(settingDefinitions) as SettingDefinition<unknown>[]) {
    names.add(definition.env)
    if (definition.secret === true) names.add(`${definition.env}_FILE`)
  }
  return Object.keys(env)
    .filter((name) => name.startsWith('ASSAY_') && !name.startsWith('ASSAY_TEST_') && !names.has(name))
    .map((name) => `${name} is set but is not a setting of this version.${suggest(name, names)}`)
}

function suggest(name: string, names: Iterable<string>): string {
  const [closest] = [...names]
    .map((candidate) => ({ candidate, letters: countEdits(candidate.toLowerCase(), name.toLowerCase()) }))
    .filter(({ letters }) => letters <= 2)
    .sort((a, b) => a.letters - b.letters)
  return closest === undefined ? '' : ` Did you mean ${closest.candidate}?`
}

/** The Levenshtein distance: letters to change, add or remove to turn one word into the other. */
function countEdits(a: string, b: string): number {
  let row = Array.from({ length: b.length + 1 }, (_, i) => i)
  for (let i = 1; i <= a.length; i++) {
    const next = [i]
    for (let j = 1; j <= b.length; j++) {
      const change = (row[j - 1] ?? 0) + (a[i - 1] === b[j - 1] ? 0 : 1)
      next.push(Math.min(change, (row[j] ?? 0) + 1, (next[j - 1] ?? 0) + 1))
    }
    row = next
  }
  return row[b.length] ?? 0
}

import { X509Certificate } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { createSecureContext } from 'node:tls'
import { type Config, ConfigMistakes } from '../config/load-config.ts'
import { credential } from '../config/readers.ts'
import { listenAddress } from '../config/setting.ts'
import { readNetwork } from '../domain/accounts/keys.ts'
import type { ListenAddress, SocketAccess } from '../listeners/listen-address.ts'
import type { ListenerTls } from '../listeners/listener.ts'
import { mostBytes, type OnFailure } from '../listeners/listener-scan.ts'
import { makeOptionReader, type OptionReader, type TomlTable } from '../runtime/toml-options.ts'

/** A listener, from the settings or from a table `[[listeners]]` of assay.toml. */
export type ListenerDefinition = {
  name: string
  kind: 'clamd' | 'icap'
  /** Where it is defined, for messages. */
  origin: string
  address: ListenAddress
  /** API key of the account that the scans belong to. */
  apiKey: string
  tls: (ListenerTls & { certFile: string }) | undefined
  /** Networks of the clients that are served; undefined for all. */
  networks: string[] | undefined
  maxConnections: number
  maxBytes: number
  /** For clamd: whether clients get `ERROR` or `FOUND` when there is no result. */
  onFailure: OnFailure
  /** For ICAP: whether content that cannot be scanned is blocked. */
  onError: 'block' | 'allow'
  /** For ICAP: whether the beginning of a download is sent before its verdict. */
  trickles: boolean
}

type ListenerConfig = Pick<
  Config,
  | 'clamdListen'
  | 'clamdListenKey'
  | 'clamdListenOnFailure'
  | 'icapListen'
  | 'icapKey'
  | 'icapOnError'
  | 'icapTrickle'
  | 'listeners'
>

/** Each connection may hold a megabyte of content in memory. */
const defaultConnections = 256
const mostConnections = 4096
const defaultAccess: SocketAccess = { mode: 0o660, uid: undefined, gid: undefined }
const megabyte = 1024 * 1024
const handshakeMs = 10_000

/** Reads all listeners. Throws `ConfigMistakes` with a sentence for each wrong option. */
export function readListeners(config: ListenerConfig): ListenerDefinition[] {
  const mistakes: string[] = []
  const names = new Set<string>()
  const fromSettings = readSettings(config)
  for (const { name } of fromSettings) names.add(name)
  const fromTables = config.listeners.flatMap((table) => readTable(table, names, mistakes) ?? [])
  const definitions = [...fromSettings, ...fromTables]
  mistakes.push(...findSharedAddresses(definitions))
  if (mistakes.length > 0) throw new ConfigMistakes(mistakes)
  return definitions
}

/** The address as it is written in assay.toml. `port` is the one that the system chose for port 0. */
export function toAddressText(address: ListenAddress, port?: number): string {
  if ('path' in address) return `unix:${address.path}`
  const host = address.host.includes(':') ? `[${address.host}]` : address.host
  return `tcp://${host}:${port ?? address.port}`
}

function readSettings(config: ListenerConfig): ListenerDefinition[] {
  const { clamdListen, clamdListenKey, icapListen, icapKey } = config
  const shared = {
    tls: undefined,
    networks: undefined,
    maxConnections: defaultConnections,
    maxBytes: mostBytes,
    onFailure: config.clamdListenOnFailure,
    onError: config.icapOnError,
    trickles: config.icapTrickle === 'on',
  }
  const define = (
    kind: ListenerDefinition['kind'],
    origin: string,
    given: ReturnType<typeof listenAddress> | undefined,
    apiKey: string | undefined,
  ): ListenerDefinition[] =>
    given === undefined || apiKey === undefined
      ? []
      : [{ ...shared, name: kind, kind, origin, address: withAccess(given, defaultAccess), apiKey }]
  return [
    ...define('clamd', 'ASSAY_CLAMD_LISTEN', clamdListen, clamdListenKey),
    ...define('icap', 'ASSAY_ICAP_LISTEN', icapListen, icapKey),
  ]
}

const withAccess = (address: ReturnType<typeof listenAddress>, access: SocketAccess): ListenAddress =>
  'path' in address ? { ...address, access } : address

function readTable(table: TomlTable, names: Set<string>, mistakes: string[]): ListenerDefinition | undefined {
  const count = mistakes.length
  const options = makeOptionReader(table, mistakes, 'listener')
  const name = readName(options, names)
  const kind = options.oneOf('kind', ['clamd', 'icap'], 'clamd')
  if (!options.has('kind')) options.note('kind', 'is missing: add kind = "clamd" or kind = "icap"')
  const address = readAddress(options)
  const apiKey = readKey(options)
  const tls = readTls(options)
  const networks = readNetworks(options)
  if (address !== undefined && 'path' in address) {
    if (tls !== undefined) options.note('tls_cert', 'is for tcp:// addresses: a unix socket is local')
    if (networks !== undefined) options.note('networks', 'are for tcp:// addresses: use mode, owner and group')
  }
  const connections = { min: 1, max: mostConnections, fallback: defaultConnections }
  const megabytes = { min: 1, max: mostBytes / megabyte, fallback: mostBytes / megabyte }
  const definition = {
    name,
    kind,
    origin: `${table.origin}: listener ${JSON.stringify(name)}`,
    tls,
    networks,
    maxConnections: options.wholeNumber('max_connections', connections),
    maxBytes: options.wholeNumber('max_mb', megabytes) * megabyte,
    onFailure: kind === 'clamd' ? options.oneOf('on_failure', ['error', 'found'], 'error') : ('error' as const),
    onError: kind === 'icap' ? options.oneOf('on_error', ['block', 'allow'], 'block') : ('block' as const),
    trickles: kind === 'icap' && options.flag('trickle', false),
  }
  options.finish()
  if (mistakes.length > count || address === undefined || apiKey === undefined) return undefined
  return { ...definition, address, apiKey }
}

function readName(options: OptionReader, names: Set<string>): string {
  const must = 'must be 1 to 40 letters, digits, dots, hyphens or underscores'
  const name = options.requireText('name', '"a short name for logs and metrics"', /^[A-Za-z0-9][\w.-]{0,39}$/, must)
  if (names.has(name)) options.note('name', 'belongs to another listener already: choose another one')
  names.add(name)
  return name
}

function readAddress(options: OptionReader): ListenAddress | undefined {
  const text = options.requireText('address', '"tcp://127.0.0.1:3310" or "unix:/run/assay/clamd.sock"')
  if (text === '') return undefined
  try {
    const address = listenAddress(text)
    return 'path' in address ? withAccess(address, readAccess(options)) : address
  } catch (error) {
    options.note('address', `${(error as Error).message}. Given: ${JSON.stringify(text)}`)
    return undefined
  }
}

function readAccess(options: OptionReader): SocketAccess {
  const mode = options.text('mode', /^0?[0-7]{3}$/, 'must be permissions in octal digits, such as "0660"')
  return {
    mode: mode === undefined ? defaultAccess.mode : Number.parseInt(mode, 8),
    uid: readId(options, 'owner', '/etc/passwd'),
    gid: readId(options, 'group', '/etc/group'),
  }
}

/** Finds the number of a user or group. Both files have the name first, and the number as the third field. */
function readId(options: OptionReader, option: 'owner' | 'group', file: string): number | undefined {
  const name = options.text(option)
  if (name === undefined || /^\d{1,9}$/.test(name)) return name === undefined ? undefined : Number(name)
  const entries = readFileSync(file, 'utf8')
    .split('\n')
    .map((line) => line.split(':'))
  const id = entries.find(([entry]) => entry === name)?.[2]
  if (id === undefined) options.note(option, `is not in ${file}: ${JSON.stringify(name)}. Give its number instead`)
  return id === undefined ? undefined : Number(id)
}

function readKey(options: OptionReader): string | undefined {
  const must = 'must be an API key: 8 to 255 visible ASCII characters'
  const key = options.secret('api_key', /^[\x21-\x7e]{8,255}$/, must)
  if (key === undefined && !options.has('api_key') && !options.has('api_key_file'))
    options.note('api_key_file', 'is missing: add the path of a file with the API key of an account')
  return key === undefined ? undefined : credential(key)
}

const nameForm = /^[^\s,][^\r\n]{0,253}$/

/** Reads `tls_cert`, `tls_key`, `client_ca` and `clients`. */
function readTls(options: OptionReader): ListenerDefinition['tls'] {
  const certFile = options.text('tls_cert')
  const keyFile = options.text('tls_key')
  const caFile = options.text('client_ca')
  const clients = options.texts('clients', nameForm, 'must be a list of names or SHA-256 fingerprints of certificates')
  if (clients !== undefined && caFile === undefined) options.note('clients', 'needs client_ca, which issues them')
  if (certFile === undefined || keyFile === undefined) {
    if (certFile !== keyFile) options.note('tls_cert', 'and tls_key go together: set both or neither')
    else if (caFile !== undefined) options.note('client_ca', 'needs tls_cert and tls_key')
    return undefined
  }
  const read = () => {
    const pair = { cert: readFileSync(certFile), key: readFileSync(keyFile) }
    if (caFile === undefined) return pair
    const ca = readFileSync(caFile)
    // Node ignores a file without certificates.
    new X509Certificate(ca)
    return { ...pair, ca }
  }
  try {
    createSecureContext(read())
  } catch (error) {
    options.note('tls_cert', `and the other files for TLS cannot be used: ${(error as Error).message}`)
  }
  const files = [certFile, keyFile, ...(caFile === undefined ? [] : [caFile])]
  return { certFile, files, read, requiresCertificate: caFile !== undefined, clients, handshakeMs }
}

function readNetworks(options: OptionReader): string[] | undefined {
  const texts = options.texts('networks', /\S/, 'must be a list of networks such as ["10.0.0.0/8", "fd00::/8"]')
  return texts?.flatMap((text) => {
    const network = readNetwork(text)
    if (network === undefined) options.note('networks', `must be networks such as 10.0.0.0/8. Given: ${text}`)
    return network ?? []
  })
}

/** Two listeners on one address: the second would fail to start, or wait for the lock of the first. */
function findSharedAddresses(definitions: ListenerDefinition[]): string[] {
  const owners = new Map<string, string>()
  return definitions.flatMap(({ name, origin, address }) => {
    const text = toAddressText(address)
    const other = owners.get(text)
    owners.set(text, name)
    return other === undefined || text.endsWith(':0')
      ? []
      : [`${origin}: address ${text} belongs to the listener ${other} already: choose another one.`]
  })
}

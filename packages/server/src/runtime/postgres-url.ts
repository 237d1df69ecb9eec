export type PostgresHost = { host: string; port: number }

/** How a connection uses TLS. The files are read by the part that connects, again for each connection. */
export type PostgresTls = {
  /** `none` encrypts only, `ca` also checks the certificate, `full` also checks that it names the host. */
  verify: 'none' | 'ca' | 'full'
  /** PEM files; without `caFile`, the certificate authorities that ship with Node are trusted. */
  caFile: string | undefined
  crlFile: string | undefined
  certFile: string | undefined
  keyFile: string | undefined
  keyPassword: string | undefined
}

/** The parts of a PostgreSQL URL. Parts that are undefined have the defaults of the driver. */
export type PostgresAddress = {
  hosts: PostgresHost[]
  user: string | undefined
  password: string | undefined
  database: string | undefined
  tls: PostgresTls | undefined
  connectTimeoutMs: number | undefined
  applicationName: string | undefined
  /** Settings of the session, such as `-c search_path=assay`. */
  options: string | undefined
}

const example = 'postgres://user:password@host:5432/assay'
const parameterNames = [
  'host',
  'port',
  'user',
  'password',
  'dbname',
  'sslmode',
  'ssl',
  'sslrootcert',
  'sslcrl',
  'sslcert',
  'sslkey',
  'sslpassword',
  'target_session_attrs',
  'connect_timeout',
  'application_name',
  'options',
]

/**
 * Parses a URL as libpq does, with one host or several, and throws an Error whose message completes "... must ...".
 * Parameters that Assay would ignore are refused, because some of them promise security.
 */
export function parsePostgresUrl(url: string): PostgresAddress {
  const [, userInfo = '', hostList, path = '', query = ''] =
    /^postgres(?:ql)?:\/\/(?:([^/?#\s]*)@)?([^@/?#\s]*)(?:\/([^?#\s]*))?(?:\?([^#\s]*))?$/.exec(url) ?? []
  if (hostList === undefined || url.endsWith('://')) throw new Error(`must be a URL such as ${example}`)
  const parameters = readParameters(query)
  const [, user = '', password = ''] = /^([^:]*):?(.*)$/s.exec(userInfo) ?? []
  requireWritable(parameters.get('target_session_attrs'))
  return {
    hosts: toHosts(hostList, parameters.get('host'), parameters.get('port')),
    user: parameters.get('user') ?? toText(decode(user)),
    password: parameters.get('password') ?? toText(decode(password)),
    database: parameters.get('dbname') ?? toText(decode(path)),
    tls: toTls(parameters),
    connectTimeoutMs: toTimeout(parameters.get('connect_timeout')),
    applicationName: parameters.get('application_name'),
    options: parameters.get('options'),
  }
}

const toText = (text: string) => (text === '' ? undefined : text)

function decode(text: string): string {
  try {
    return decodeURIComponent(text)
  } catch {
    throw new Error('must be encoded for URLs: write % as %25')
  }
}

function readParameters(query: string): Map<string, string> {
  const parameters = new Map<string, string>()
  for (const part of query.split('&').filter((text) => text !== '')) {
    const [, name = '', value = ''] = /^([^=]*)=?(.*)$/s.exec(part) ?? []
    if (!parameterNames.includes(name)) {
      throw new Error(`must have no parameters other than ${parameterNames.join(', ')}`)
    }
    if (parameters.has(name)) throw new Error(`must have the parameter ${name} only once`)
    if (value === '') throw new Error(`must have a value for the parameter ${name}, or leave it out`)
    parameters.set(name, decode(value))
  }
  return parameters
}

/** `h1:5432,h2,[::1]:5433`. The parameters replace names and ports of this list. */
function toHosts(list: string, names: string | undefined, ports: string | undefined): PostgresHost[] {
  const hosts = names?.split(',').map((host) => ({ host, port: '' })) ?? decode(list).split(',').map(splitPort)
  const portList = ports?.split(',') ?? []
  if (portList.length > 1 && portList.length !== hosts.length) {
    throw new Error('must have one port for all hosts, or one for each')
  }
  return hosts.map(({ host, port }, i) => ({
    host: host || 'localhost',
    port: toPort(portList[i] ?? portList[0] ?? port),
  }))
}

function splitPort(text: string): { host: string; port: string } {
  const [, v6, name, port = ''] = /^(?:\[([0-9a-f:.%]+)\]|([^:[\]]*))(?::(.*))?$/i.exec(text) ?? []
  const host = v6 ?? name
  if (host === undefined) throw new Error('must name hosts such as db1:5432,db2:5432 or [::1]:5432')
  return { host, port }
}

function toPort(text: string): number {
  const port = Number(text || 5432)
  if (!/^\d*$/.test(text) || port < 1 || port > 65535) throw new Error('must have ports from 1 to 65535')
  return port
}

/** Assay writes on every connection, so that only a primary will do, whatever the URL says. */
function requireWritable(attributes: string | undefined) {
  if (attributes === undefined || attributes === 'read-write' || attributes === 'primary') return
  throw new Error('must have target_session_attrs=read-write, or leave it out: Assay needs the primary')
}

const modes = ['disable', 'require', 'verify-ca', 'verify-full']

function toTls(parameters: Map<string, string>): PostgresTls | undefined {
  // libpq reads ssl=true, which other drivers use, as sslmode=require.
  const ssl = parameters.get('ssl')
  if (ssl !== undefined && ssl !== 'true' && ssl !== 'false') throw new Error('must have ssl=true or ssl=false')
  const mode = parameters.get('sslmode') ?? (ssl === 'true' ? 'require' : undefined)
  if (ssl === 'true' && mode === 'disable') throw new Error('must have either ssl=true or sslmode=disable')
  const files = ['sslrootcert', 'sslcrl', 'sslcert', 'sslkey', 'sslpassword'].filter((name) => parameters.has(name))
  if (mode === undefined || mode === 'disable') {
    if (files.length > 0) throw new Error(`must have sslmode=verify-full, or another, beside ${files.join(', ')}`)
    return undefined
  }
  // `allow` and `prefer` go on without TLS where the server offers none, which protects nothing.
  if (!modes.includes(mode)) throw new Error(`must have sslmode=${modes.join(' or sslmode=')}`)
  if (parameters.has('sslcert') !== parameters.has('sslkey')) throw new Error('must have both sslcert and sslkey')
  const root = parameters.get('sslrootcert')
  if (mode === 'verify-ca' && (root === undefined || root === 'system')) {
    // Anyone gets a certificate of a public authority for a host of their own.
    throw new Error('must have sslrootcert with a file of your certificate authority beside sslmode=verify-ca')
  }
  if (root === 'system' && mode !== 'verify-full') throw new Error('must have sslmode=verify-full beside system')
  return {
    // With a root certificate, libpq checks it in the mode `require` too.
    verify: mode === 'verify-full' ? 'full' : root === undefined ? 'none' : 'ca',
    caFile: root === 'system' ? undefined : root,
    crlFile: parameters.get('sslcrl'),
    certFile: parameters.get('sslcert'),
    keyFile: parameters.get('sslkey'),
    keyPassword: parameters.get('sslpassword'),
  }
}

function toTimeout(seconds: string | undefined): number | undefined {
  if (seconds === undefined) return undefined
  if (!/^[1-9]\d{0,3}$/.test(seconds)) throw new Error('must have connect_timeout in whole seconds')
  return Number(seconds) * 1000
}

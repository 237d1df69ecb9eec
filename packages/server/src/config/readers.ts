import { BlockList, isIP } from 'node:net'

/** Turns the text of a setting into its value, or throws an Error whose message completes "NAME must be ...". */
export type Reader<T> = (text: string) => T

export const text: Reader<string> = (value) => {
  if (value.trim() === '') throw new Error('must not be empty')
  return value
}

export const port: Reader<number> = (value) => {
  const number = Number(value)
  if (!/^\d{1,5}$/.test(value) || number > 65535) throw new Error('must be a port number from 0 to 65535')
  return number
}

export const wholeNumber =
  (min: number, max: number): Reader<number> =>
  (value) => {
    const number = Number(value)
    if (!/^\d{1,15}$/.test(value) || number < min || number > max) {
      throw new Error(`must be a whole number from ${min} to ${max}`)
    }
    return number
  }

export const oneOf =
  <const T extends string>(...choices: T[]): Reader<T> =>
  (value) => {
    const found = choices.find((choice) => choice === value)
    if (found === undefined) throw new Error(`must be one of ${choices.join(', ')}`)
    return found
  }

export type Roles = { api: boolean; worker: boolean }

export const roles: Reader<Roles> = (value) => {
  const names = value.split(',').map((name) => name.trim())
  if (names.some((name) => name !== 'api' && name !== 'worker')) {
    throw new Error('must be api, worker or both, separated by a comma')
  }
  return { api: names.includes('api'), worker: names.includes('worker') }
}

export const postgresUrl: Reader<string> = (value) => {
  // Not a URL to every parser: the host may be missing when `?host=/run/postgresql` names a socket.
  if (!/^postgres(ql)?:\/\/\S+$/.test(value)) {
    throw new Error('must be an address such as postgres://user:password@host:5432/assay')
  }
  return value
}

export const httpOrigin: Reader<string> = (value) => {
  const url = URL.parse(value)
  if (url === null || !/^https?:$/.test(url.protocol) || url.origin !== value.replace(/\/$/, '')) {
    throw new Error('must be an origin such as https://scan.example.com, without a path')
  }
  return url.origin
}

export const listOf =
  <T>(item: Reader<T>): Reader<T[]> =>
  (value) =>
    value
      .split(',')
      .map((part) => part.trim())
      .filter((part) => part !== '')
      .map((part) => item(part))

/** A network such as 10.0.0.0/8, or a single address. */
export const network: Reader<string> = (value) => {
  const [address = '', bits, ...rest] = value.split('/')
  const version = isIP(address)
  const widest = version === 6 ? 128 : 32
  const prefix = bits === undefined ? widest : /^\d{1,3}$/.test(bits) ? Number(bits) : Number.NaN
  if (version === 0 || rest.length > 0 || !(prefix >= 0 && prefix <= widest)) {
    throw new Error('must be networks such as 10.0.0.0/8 or fd00::/8, separated by commas')
  }
  // BlockList is what will match against it: let it have the last word.
  new BlockList().addSubnet(address, prefix, version === 6 ? 'ipv6' : 'ipv4')
  return `${address}/${prefix}`
}

/** Where clamd listens: the path of a socket, or a host and a port. */
export const clamdAddress: Reader<{ path: string } | { host: string; port: number }> = (value) => {
  if (value.startsWith('/')) return { path: value }
  const [, v6, name, port] = /^(?:\[([0-9a-f:.]+)\]|([\w.-]+)):(\d{1,5})$/i.exec(value) ?? []
  const host = v6 ?? name
  if (host === undefined || Number(port) === 0 || Number(port) > 65535) {
    throw new Error(
      'must be the path of a socket such as /run/clamav/clamd.ctl, or a host and port such as clamav:3310',
    )
  }
  return { host, port: Number(port) }
}

/** Where to listen: a port, on loopback then, or an address and a port. */
export const listenAddress: Reader<{ host: string; port: number }> = (value) => {
  const [, v6, name, digits] = /^(?:(?:\[([0-9a-f:.]+)\]|([\w.-]+)):)?(\d{1,5})$/i.exec(value) ?? []
  if (digits === undefined || Number(digits) > 65535) {
    throw new Error('must be a port such as 3310, or an address and a port such as 0.0.0.0:3310')
  }
  return { host: v6 ?? name ?? '127.0.0.1', port: Number(digits) }
}

export const key256: Reader<Buffer> = (value) => {
  if (!/^[0-9a-f]{64}$/i.test(value)) throw new Error('must be 64 hex digits, such as `openssl rand -hex 32` makes')
  return Buffer.from(value, 'hex')
}

export const httpUrl: Reader<string> = (value) => {
  const url = URL.parse(value)
  // The URL parser forgives blanks and line feeds; a line of settings does not.
  if (url === null || !/^https?:$/.test(url.protocol) || /\s/.test(value))
    throw new Error('must be addresses that begin with http or https')
  return value
}

/** Travels in a header and is told apart by its bytes alone, so nothing invisible may be in it. */
export const credential: Reader<string> = (value) => {
  if (!/^[\x21-\x7e]{8,255}$/.test(value)) throw new Error('must be 8 to 255 visible ASCII characters without blanks')
  return value
}

export const regionName: Reader<string> = (value) => {
  if (!/^[a-z0-9][a-z0-9-]{0,31}$/.test(value)) throw new Error('must be a short name such as eu or us-east-1')
  return value
}

export const proxyUrl: Reader<URL> = (value) => {
  const url = URL.parse(value)
  if (url === null || url.protocol !== 'http:' || url.pathname !== '/' || url.search !== '' || url.hash !== '') {
    throw new Error('must be an address such as http://proxy.example.com:3128')
  }
  return url
}

const unitMs: Record<string, number> = { s: 1000, m: 60_000, h: 3_600_000, d: 86_400_000 }

/** In milliseconds. */
export const duration: Reader<number> = (value) => {
  const [, number, unit = ''] = /^(\d{1,6})([smhd])$/.exec(value) ?? []
  const ms = Number(number) * (unitMs[unit] ?? Number.NaN)
  if (!(ms > 0)) throw new Error('must be made of times such as 5s, 30m, 2h or 1d')
  return ms
}

import { BlockList, isIP } from 'node:net'
import { domainToUnicode } from 'node:url'
import { maxUrlLength } from '@assay/contract/limits'

/** The bad ports of the fetch standard: servers of other protocols could mistake an HTTP request for their own. */
const badPorts = new Set([
  0, 1, 7, 9, 11, 13, 15, 17, 19, 20, 21, 22, 23, 25, 37, 42, 43, 53, 69, 77, 79, 87, 95, 101, 102, 103, 104, 109, 110,
  111, 113, 115, 117, 119, 123, 135, 137, 139, 143, 161, 179, 389, 427, 465, 512, 513, 514, 515, 526, 530, 531, 532,
  540, 548, 554, 556, 563, 587, 601, 636, 989, 990, 993, 995, 1719, 1720, 1723, 2049, 3659, 4045, 4190, 5060, 5061,
  6000, 6566, 6665, 6666, 6667, 6668, 6669, 6679, 6697, 10080,
])

/**
 * Returns the errors of a URL that a caller wants to have called. The text is checked before it is parsed, because the
 * WHATWG parser silently drops tabs and newlines, trims blanks and replaces backslashes. Host names are checked when
 * they are resolved.
 */
export function checkWebAddress(text: string, policy: AddressPolicy): string[] {
  if (text === '') return ['must not be empty.']
  if (text.length > maxUrlLength) return [`must not be longer than ${maxUrlLength} characters.`]
  if (/[\u0000-\u0020\u007f-\u00a0\u2028\u2029\\]/u.test(text) || !text.isWellFormed()) {
    return ['must not contain blanks, control characters or backslashes.']
  }
  if (!/^https?:\/\/[^/?#]/i.test(text)) return ['must be an absolute http or https URL with a host.']
  const url = URL.parse(text)
  if (url === null || !isPossibleHost(url.hostname)) return ['must be a valid URL.']
  const errors: string[] = []
  if (url.username !== '' || url.password !== '' || /^https?:\/\/[^/?#]*@/i.test(text)) {
    errors.push('must not contain a user name or password.')
  }
  if (url.port !== '' && badPorts.has(Number(url.port))) errors.push(`must not use port ${url.port}.`)
  const literalAddress = findLiteral(url.hostname)
  if (literalAddress !== undefined && !policy.isAllowed(literalAddress))
    errors.push('must not point to an address that is not public.')
  return errors
}

/** Tells names that cannot exist: DNS allows 253 characters, in labels of 1 to 63, and international ones in Punycode. */
export function isPossibleHost(hostname: string): boolean {
  if (hostname.startsWith('[')) return true
  const host = hostname.replace(/\.$/, '')
  const hasLabels = host.length <= 253 && host.split('.').every((label) => label.length >= 1 && label.length <= 63)
  // A label that is no valid Punycode stays as it is.
  return hasLabels && !/(^|\.)xn--/.test(domainToUnicode(host))
}

/** Finds an IP address in the host. The URL parser has normalized all spellings (decimal, octal, hex, short). */
function findLiteral(hostname: string): string | undefined {
  if (hostname.startsWith('[')) return hostname.slice(1, -1)
  const host = hostname.replace(/\.$/, '')
  return /^\d+\.\d+\.\d+\.\d+$/.test(host) ? host : undefined
}

export type AddressPolicy = {
  /** Whether the service may connect to this IPv4 or IPv6 address. */
  isAllowed(address: string): boolean
  /** False for addresses that are allowed only because the operator has opened their network. */
  isPublic(address: string): boolean
  /** Whether the operator has opened any network that is not public. */
  readonly opensNetworks: boolean
}

/** IANA's special-purpose addresses of IPv4, and the address of the platform on Azure. */
const notPublicV4 = [
  '0.0.0.0/8',
  '10.0.0.0/8',
  '100.64.0.0/10',
  '127.0.0.0/8',
  '169.254.0.0/16',
  '172.16.0.0/12',
  '192.0.0.0/24',
  '192.0.2.0/24',
  '192.31.196.0/24',
  '192.52.193.0/24',
  '192.88.99.0/24',
  '192.168.0.0/16',
  '192.175.48.0/24',
  '198.18.0.0/15',
  '198.51.100.0/24',
  '203.0.113.0/24',
  '224.0.0.0/4',
  '240.0.0.0/4',
  '168.63.129.16/32',
]

/**
 * Special addresses within global unicast: Teredo, ORCHID, benchmarking, documentation, and 6to4, which embeds IPv4.
 */
const notPublicV6 = ['2001::/23', '2001:db8::/32', '2002::/16', '2620:4f:8000::/48', '3fff::/20']

/** Contains all public addresses. Addresses that embed IPv4 (mapped, NAT64) and all local ones lie outside. */
const globalUnicast = '2000::/3'

/** Allows public addresses, and the networks in `allowed`, which the operator has opened. */
export function makeAddressPolicy(allowed: readonly string[]): AddressPolicy {
  const openedNetworks = toBlockList(allowed)
  const closedNetworks = toBlockList([...notPublicV4, ...notPublicV6])
  const globalNetworks = toBlockList([globalUnicast])

  return {
    // BlockList compares a mapped address with IPv4 rules, so an opened network is open in that form too.
    isAllowed: (address) => isPlain(address) && (openedNetworks.check(address, toFamily(address)) || isPublic(address)),
    isPublic,
    opensNetworks: allowed.length > 0,
  }

  function isPublic(address: string): boolean {
    if (!isPlain(address)) return false
    const family = toFamily(address)
    if (closedNetworks.check(address, family)) return false
    return family === 'ipv4' || globalNetworks.check(address, family)
  }
}

/** An address with a zone belongs to an interface of this machine, and BlockList ignores the zone. */
const isPlain = (address: string) => isIP(address) !== 0 && !address.includes('%')

const toFamily = (address: string) => (isIP(address) === 6 ? 'ipv6' : 'ipv4')

export function toBlockList(networks: readonly string[]): BlockList {
  const list = new BlockList()
  for (const network of networks) {
    const [address = '', bits] = network.split('/')
    list.addSubnet(address, Number(bits), isIP(address) === 6 ? 'ipv6' : 'ipv4')
  }
  return list
}

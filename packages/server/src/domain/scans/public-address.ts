import { BlockList, isIP } from 'node:net'

export type AddressPolicy = {
  /** Whether this literal IPv4 or IPv6 address may be called. */
  isAllowed(address: string): boolean
}

/** The special-purpose registries of IANA for IPv4, and the address that answers as the platform on Azure. */
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

/** Within global unicast: Teredo, ORCHID, benchmarking, documentation and 6to4, which can carry any IPv4 address. */
const notPublicV6 = ['2001::/23', '2001:db8::/32', '2002::/16', '2620:4f:8000::/48', '3fff::/20']

/** Everything public lies in here. What embeds IPv4 (mapped, NAT64) and all local kinds lie outside. */
const globalUnicast = '2000::/3'

/** `allowed` are the networks that the operator opened in spite of all this. */
export function makeAddressPolicy(allowed: readonly string[]): AddressPolicy {
  const opened = toBlockList(allowed)
  const closed = toBlockList([...notPublicV4, ...notPublicV6])
  const unicast = toBlockList([globalUnicast])

  return {
    isAllowed(address) {
      const version = isIP(address)
      // A zone names an interface of this machine: nobody outside has one, and BlockList would overlook it.
      if (version === 0 || address.includes('%')) return false
      const family = version === 6 ? 'ipv6' : 'ipv4'
      // BlockList matches a mapped address against IPv4 rules by itself, so an opened network is open in that form too.
      if (opened.check(address, family)) return true
      if (closed.check(address, family)) return false
      return version === 4 || unicast.check(address, family)
    },
  }
}

function toBlockList(networks: readonly string[]): BlockList {
  const list = new BlockList()
  for (const network of networks) {
    const [address = '', bits] = network.split('/')
    list.addSubnet(address, Number(bits), isIP(address) === 6 ? 'ipv6' : 'ipv4')
  }
  return list
}

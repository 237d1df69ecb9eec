import assert from 'node:assert/strict'
import { test } from 'node:test'
import { toNetwork } from '../../src/domain/console/throttle.ts'

test('an IPv4 address counts as itself, an IPv6 address as its /64, in every notation', () => {
  for (const [address, network] of [
    ['192.0.2.7', '192.0.2.7'],
    ['::ffff:192.0.2.7', '192.0.2.7'],
    ['2001:db8:1:2:3:4:5:6', '2001:db8:1:2::/64'],
    ['2001:0db8:0001:0002:ffff::', '2001:db8:1:2::/64'],
    ['2001:DB8:1:2::9', '2001:db8:1:2::/64'],
    ['2001:db8::1', '2001:db8:0:0::/64'],
    ['2001:db8:0:0:1:2:3:4', '2001:db8:0:0::/64'],
    ['fe80::1%eth0', 'fe80:0:0:0::/64'],
    ['::1', '0:0:0:0::/64'],
    // Proxies write such values into X-Forwarded-For; all of them count as one.
    ['unknown', 'unknown'],
    ['192.0.2.7:4711', 'unknown'],
    ['', 'unknown'],
  ] as const) {
    assert.equal(toNetwork(address), network, address)
  }
})

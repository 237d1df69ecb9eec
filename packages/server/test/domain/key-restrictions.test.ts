import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import {
  findKeyRefusal,
  type KeyRestrictions,
  type KeyUse,
  parseRestrictions,
  readNetwork,
  toRestrictionsText,
  unrestricted,
} from '../../src/domain/accounts/keys.ts'

const isRefused = (restrictions: Partial<KeyRestrictions>, use: Partial<KeyUse>) =>
  findKeyRefusal(toRestrictionsText({ ...unrestricted, ...restrictions }), {
    action: 'scan',
    kind: 'malware',
    address: '192.0.2.1',
    ...use,
  }) !== undefined

test('the same restrictions have the same text, and none have none', () => {
  assert.equal(toRestrictionsText(unrestricted), '')
  const one = toRestrictionsText({ allow: ['submit', 'read'], kinds: null, networks: ['b/1', 'a/1', 'b/1'] })
  assert.equal(one, '{"allow":["read","submit"],"networks":["a/1","b/1"]}')
  assert.deepEqual(parseRestrictions(one), { allow: ['read', 'submit'], kinds: null, networks: ['a/1', 'b/1'] })
  assert.deepEqual(parseRestrictions(''), unrestricted)
})

describe('networks', () => {
  const networks = ['10.0.0.0/8', '192.0.2.7/32', '2001:db8:1::/48', 'fe80::/10']
  for (const [address, isAllowed] of [
    ['10.255.0.1', true],
    ['11.0.0.1', false],
    ['192.0.2.7', true],
    ['192.0.2.8', false],
    ['::ffff:10.1.2.3', true],
    ['::FFFF:10.1.2.3', true],
    ['::ffff:a01:203', true],
    ['0:0:0:0:0:ffff:0a01:0203', true],
    ['::ffff:11.1.2.3', false],
    ['::10.1.2.3', false],
    ['2001:db8:1:ffff::1', true],
    ['2001:0DB8:0001::', true],
    ['2001:db8:2::1', false],
    ['fe80::1%eth0', true],
    ['', false],
    ['unknown', false],
    ['10.1.2.3:4711', false],
  ] as const) {
    test(`${address || 'no address'} is ${isAllowed ? 'in' : 'outside'}`, () => {
      assert.equal(isRefused({ networks }, { address }), !isAllowed)
      assert.equal(isRefused({ networks }, { address, action: 'none' }), !isAllowed)
    })
  }

  test('all IPv6 addresses do not include mapped ones, nor all IPv4 addresses IPv6 ones', () => {
    assert(isRefused({ networks: ['::/0'] }, { address: '::ffff:192.0.2.1' }))
    assert(!isRefused({ networks: ['::/0'] }, { address: '2001:db8::1' }))
    assert(!isRefused({ networks: ['0.0.0.0/0'] }, { address: '::ffff:192.0.2.1' }))
    assert(isRefused({ networks: ['0.0.0.0/0'] }, { address: '2001:db8::1' }))
  })

  test('no network at all allows nobody', () => assert(isRefused({ networks: [] }, {})))

  test('are read in the usual forms only', () => {
    assert.equal(readNetwork(' 10.0.0.0/8 '), '10.0.0.0/8')
    assert.equal(readNetwork('192.0.2.7'), '192.0.2.7/32')
    assert.equal(readNetwork('2001:DB8::/32'), '2001:db8::/32')
    assert.equal(readNetwork('::1'), '::1/128')
    for (const wrong of ['', 'all', '10.0.0.0/33', '10.0.0/8', '10.0.0.0/8/8', '::/129', '10.0.0.0/-1', '10.0.0.0/x'])
      assert.equal(readNetwork(wrong), undefined, wrong)
    for (const useless of ['::ffff:10.0.0.0/104', '::ffff:a00:0/104', 'fe80::1%eth0'])
      assert.equal(readNetwork(useless), undefined, useless)
  })
})

test('an action on all kinds needs a key for all of them, and some actions need none', () => {
  assert(isRefused({ kinds: ['malware'] }, { action: 'read', kind: 'all' }))
  assert(!isRefused({ kinds: ['malware', 'nsfw_image'] }, { action: 'read', kind: 'all' }))
  assert(!isRefused({ kinds: [], allow: [] }, { action: 'none', kind: 'all' }))
  assert(isRefused({ kinds: [] }, {}) && isRefused({ allow: [] }, {}))
})

test('the refusal says what the key is restricted to', () => {
  const refusal = findKeyRefusal('{"allow":["read"]}', { action: 'submit', kind: 'malware', address: '' })?.refusal
  const detail = 'This API key may not submit background scans. It is restricted to: read.'
  assert.deepEqual(refusal, { kind: 'key-restricted', detail })
})

import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { clamdAddress, httpUrl, key256, listenAddress, listOf, type Reader } from '../../src/config/readers.ts'

function describeReader<T>(name: string, read: Reader<T>, good: Record<string, T>, bad: string[], says: RegExp) {
  describe(name, () => {
    for (const [text, value] of Object.entries(good)) {
      test(`is ${JSON.stringify(text)}`, () => assert.deepEqual(read(text), value))
    }
    for (const text of bad) {
      test(`is not ${JSON.stringify(text)}`, () => assert.throws(() => read(text), says))
    }
  })
}

describeReader(
  'the address of a clamd',
  clamdAddress,
  {
    '/run/clamav/clamd.ctl': { path: '/run/clamav/clamd.ctl' },
    '/a path/with:colon:1': { path: '/a path/with:colon:1' },
    'clamav:3310': { host: 'clamav', port: 3310 },
    '127.0.0.1:3310': { host: '127.0.0.1', port: 3310 },
    'scan.example.com:1': { host: 'scan.example.com', port: 1 },
    '[::1]:65535': { host: '::1', port: 65_535 },
  },
  [
    ...['', ' ', 'clamav', 'clamav:', ':3310', 'clamav:0', 'clamav:65536', 'clamav:123456', 'clamav:x', '3310'],
    ...['run/clamd.ctl', './clamd.ctl', '[]:3310', '[::1]', 'clamav:3310 ', 'clamav:3310\n'],
    ...[
      'tcp://clamav:3310',
      'http://clamav:3310',
      'unix:/run/clamd:1',
      'cla mav:3310',
      ' clamav:3310',
      '[::1:3310',
      '::1]:3310',
    ],
  ],
  /must be the path of a socket .* or a host and port/,
)

describeReader(
  'where to listen',
  listenAddress,
  {
    '3310': { host: '127.0.0.1', port: 3310 },
    '0': { host: '127.0.0.1', port: 0 },
    '0.0.0.0:3310': { host: '0.0.0.0', port: 3310 },
    'localhost:1': { host: 'localhost', port: 1 },
    '[::]:65535': { host: '::', port: 65_535 },
  },
  ['', ' ', '65536', '-1', ':3310', '::1', '[::1]', 'host', 'host:', 'host:x', '/run/sock', '3310 ', '1 2', 'a b:1'],
  /must be a port such as 3310, or an address and a port/,
)

const hex = '0123456789abcdefABCDEF'.padEnd(64, '0')
describeReader(
  'a key of 256 bits',
  key256,
  { [hex]: Buffer.from(hex, 'hex') },
  ['', hex.slice(1), `${hex}0`, `${hex}\n`, ` ${hex}`, `0x${hex.slice(2)}`, 'g'.repeat(64), '٠'.repeat(64)],
  /must be 64 hex digits/,
)

const urls = [
  'https://signatures.example.com/own.ndb',
  'http://127.0.0.1:8000/a/b.ldb?key=value&x=1',
  'https://user:password@host.example/x.hdb',
]
describeReader(
  'the address of a signature file',
  httpUrl,
  Object.fromEntries(urls.map((url) => [url, url])),
  [
    ...['', 'signatures.example.com/own.ndb', '//host/own.ndb', 'ftp://host/own.ndb', 'file:///etc/passwd', 'https://'],
    // It becomes a line of the updater's settings: what does not fit on that line would be another setting.
    ...['https://host.example/a.ndb\nDatabaseMirror other.example', 'https://host.example/a b.ndb'],
  ],
  /must be addresses that begin with http or https/,
)

test('addresses of signature files are separated by commas, and each is checked', () => {
  assert.deepEqual(listOf(httpUrl)(urls.join(', ')), urls)
  assert.deepEqual(listOf(httpUrl)(''), [])
  assert.throws(() => listOf(httpUrl)(`${urls[0]},nonsense`), /must be addresses/)
})

import assert from 'node:assert/strict'
import { test } from 'node:test'
import * as readers from '../../src/config/readers.ts'
import { listenAddress } from '../../src/config/setting.ts'

function assertReads<T>(read: readers.Reader<T>, good: Record<string, T>, bad: string[], says: RegExp) {
  for (const [text, value] of Object.entries(good)) assert.deepEqual(read(text), value, text)
  for (const text of bad) assert.throws(() => read(text), says, JSON.stringify(text))
}

test('a port is a number from 0 to 65535, and nothing that JavaScript would also call a number', () => {
  const bad = ['', '-1', '65536', '80.0', '1e3', '0x50', ' 80', '80 ', 'http', '١']
  assertReads(readers.port, { 0: 0, 80: 80, 65535: 65535 }, bad, /^Error: must be a port number/)
})

test('a whole number keeps to its bounds', () => {
  const bad = ['', '1', '201', '2.5', '-2', '1e2', '9'.repeat(20), 'NaN', 'Infinity']
  assertReads(readers.wholeNumber(2, 200), { 2: 2, 200: 200, '010': 10 }, bad, /whole number from 2 to 200/)
})

test('a choice is one of those that there are, letter by letter', () => {
  assertReads(
    readers.oneOf('all', 'scans'),
    { all: 'all', scans: 'scans' },
    ['', 'ALL', 'al', 'none'],
    /one of all, scans/,
  )
})

test('text is not blank', () => {
  assertReads(readers.text, { './data': './data' }, ['', '  ', '\t'], /must not be empty/)
})

test('a database is given as an address of PostgreSQL', () => {
  const good = ['postgres://u:p@host:5432/assay', 'postgresql:///assay?host=/run/postgresql']
  const bad = ['', 'host', 'mysql://u:p@host/db', 'https://host']
  assertReads(readers.postgresUrl, Object.fromEntries(good.map((url) => [url, url])), bad, /must be a URL such as/)
})

test('an origin has a scheme and a host, and no path', () => {
  const good = {
    'https://scan.example.com': 'https://scan.example.com',
    'https://scan.example.com/': 'https://scan.example.com',
    'http://localhost:5173': 'http://localhost:5173',
  }
  const bad = [
    '',
    '*',
    'scan.example.com',
    'https://a.example/path',
    'https://u:p@a.example',
    'ftp://a.example',
    'null',
  ]
  assertReads(
    readers.httpOrigin,
    good,
    [...bad, 'https://a.example?x', 'https://a.example#x'],
    /must be an origin such as/,
  )
})

test('a list is separated by commas, blanks around its items do not count, and each item is checked', () => {
  const read = readers.listOf(readers.httpOrigin)
  const good = { '': [], ' , ': [], 'https://a.example, http://b.example,': ['https://a.example', 'http://b.example'] }
  assertReads(read, good, ['https://a.example, nonsense', 'https://a.example;http://b.example'], /must be an origin/)
})

test('a network is an address with or without the length of its prefix', () => {
  const good = {
    '10.0.0.0/8': '10.0.0.0/8',
    '10.1.2.3': '10.1.2.3/32',
    '::1': '::1/128',
    'fd00::/8': 'fd00::/8',
    '0.0.0.0/0': '0.0.0.0/0',
  }
  const bad = [
    '',
    'localhost',
    '10.0.0.0/33',
    '10.0.0.0/',
    '10.0.0.0/-1',
    '10.0/8',
    '::/129',
    '10.0.0.0/8/8',
    '010.0.0.1',
    '10.0.0.0/8x',
  ]
  assertReads(readers.network, good, bad, /must be networks such as/)
})

test('a credential is visible ASCII, long enough to be none by accident', () => {
  const bad = ['', 'short', 'with blank', 'tab\there123', 'ümlaut-key', 'a'.repeat(256), 'line\nbreak12']
  assertReads(readers.credential, { '12345678': '12345678', ['a'.repeat(255)]: 'a'.repeat(255) }, bad, /visible ASCII/)
})

test('a region is a short name that fits in a header and a label', () => {
  const bad = ['', 'EU', '-eu', 'eu west', 'a'.repeat(33), 'eu\n', 'ü']
  assertReads(readers.regionName, { eu: 'eu', 'us-east-1': 'us-east-1' }, bad, /must be a short name/)
})

test('a time has a number and a unit, and is given in milliseconds', () => {
  const bad = ['', '0s', '5', 's', '1.5h', '-1s', '5 s', '5sec', '1w', '1234567s']
  assertReads(readers.duration, { '5s': 5000, '30m': 1_800_000, '2h': 7_200_000, '1d': 86_400_000 }, bad, /such as 5s/)
})

test('a proxy is given as a plain address', () => {
  for (const good of ['http://proxy.example.com:3128', 'http://user:word@10.1.2.3/'])
    assert.equal(readers.proxyUrl(good).protocol, 'http:')
  for (const bad of [
    '',
    'proxy:3128',
    'https://proxy.example.com',
    'socks5://a',
    'http://a/path',
    'http://a/?b',
    'http://a/#c',
  ])
    assert.throws(() => readers.proxyUrl(bad), /must be a URL such as/, bad)
})

test('the address of a clamd is a socket, or a host and a port', () =>
  assertReads(
    readers.clamdAddress,
    {
      '/run/clamav/clamd.ctl': { path: '/run/clamav/clamd.ctl' },
      '/a path/with:colon:1': { path: '/a path/with:colon:1' },
      'clamav:3310': { host: 'clamav', port: 3310 },
      '127.0.0.1:3310': { host: '127.0.0.1', port: 3310 },
      'scan.example.com:1': { host: 'scan.example.com', port: 1 },
      '[::1]:65535': { host: '::1', port: 65_535 },
    },
    [
      '',
      ' ',
      'clamav',
      'clamav:',
      ':3310',
      'clamav:0',
      'clamav:65536',
      'clamav:123456',
      'clamav:x',
      '3310',
      'run/clamd.ctl',
      './clamd.ctl',
      '[]:3310',
      '[::1]',
      'clamav:3310 ',
      'clamav:3310\n',
      'tcp://clamav:3310',
      'http://clamav:3310',
      'unix:/run/clamd:1',
      'cla mav:3310',
      ' clamav:3310',
      '[::1:3310',
      '::1]:3310',
    ],
    /must be the path of a socket .* or a host and port/,
  ))

test('an address to listen on is a port, an address and a port, or the path of a unix socket', () =>
  assertReads(
    listenAddress,
    {
      '3310': { host: '127.0.0.1', port: 3310 },
      '0': { host: '127.0.0.1', port: 0 },
      '0.0.0.0:3310': { host: '0.0.0.0', port: 3310 },
      'localhost:1': { host: 'localhost', port: 1 },
      '[::]:65535': { host: '::', port: 65_535 },
      'tcp://[::1]:1344': { host: '::1', port: 1344 },
      'tcp://0.0.0.0:0': { host: '0.0.0.0', port: 0 },
      'unix:/run/assay/clamd.sock': { path: '/run/assay/clamd.sock' },
      'unix:///run/a b': { path: '/run/a b' },
      [`unix:/${'x'.repeat(106)}`]: { path: `/${'x'.repeat(106)}` },
    },
    [
      '',
      ' ',
      'tcp://',
      'tcp:/1:2',
      'http://0.0.0.0:1',
      'unix:',
      'unix:run/x',
      'unix:/run/',
      'unix://run',
      '65536',
      '-1',
      ':3310',
      '::1',
      '[::1]',
      'host',
      'host:',
      'host:x',
      '/run/sock',
      '3310 ',
      '1 2',
      'a b:1',
    ],
    /must be a port such as 3310, an address such as tcp:.*, or unix:/,
  ))

test('the path of a unix socket is as long as Linux allows, in bytes', () => {
  for (const path of [`/${'x'.repeat(107)}`, `/${'ü'.repeat(54)}`])
    assert.throws(() => listenAddress(`unix:${path}`), /at most 107 bytes/)
})

const hex = '0123456789abcdefABCDEF'.padEnd(64, '0')
test('a key of 256 bits is 64 hex digits', () =>
  assertReads(
    readers.key256,
    { [hex]: Buffer.from(hex, 'hex') },
    ['', hex.slice(1), `${hex}0`, `${hex}\n`, ` ${hex}`, `0x${hex.slice(2)}`, 'g'.repeat(64), '٠'.repeat(64)],
    /must be 64 hex digits/,
  ))

const urls = [
  'https://signatures.example.com/own.ndb',
  'http://127.0.0.1:8000/a/b.ldb?key=value&x=1',
  'https://user:password@host.example/x.hdb',
]
test('the URL of a signature file is one line', () =>
  assertReads(
    readers.httpUrl,
    Object.fromEntries(urls.map((url) => [url, url])),
    [
      '',
      'signatures.example.com/own.ndb',
      '//host/own.ndb',
      'ftp://host/own.ndb',
      'file:///etc/passwd',
      'https://',
      // The URL becomes a line of the configuration of freshclam; a second line would be another setting.
      'https://host.example/a.ndb\nDatabaseMirror other.example',
      'https://host.example/a b.ndb',
    ],
    /must be URLs that begin with http/,
  ))

test('addresses of signature files are separated by commas, and each is checked', () => {
  assert.deepEqual(readers.listOf(readers.httpUrl)(urls.join(', ')), urls)
  assert.deepEqual(readers.listOf(readers.httpUrl)(''), [])
  assert.throws(() => readers.listOf(readers.httpUrl)(`${urls[0]},nonsense`), /must be URLs/)
})

const place = {
  at: 's3',
  bucket: 'bucket',
  prefix: '',
  endpoint: undefined,
  region: 'eu-west-1',
  pathStyle: false,
  encryption: undefined,
  caFile: undefined,
}
const store = { ...place, endpoint: 'https://s3.example.com:9000', pathStyle: true }

test('the store of job content is the disk, or a bucket of S3', () => {
  const good: Record<string, unknown> = {
    disk: { at: 'disk' },
    's3://bucket?region=eu-west-1': place,
    's3://bucket/?region=eu-west-1': place,
    's3://bucket/a/b-2/c_d.e/?region=eu-west-1': { ...place, prefix: 'a/b-2/c_d.e/' },
    's3://my.bucket-1?region=eu-west-1&path_style=true': { ...place, bucket: 'my.bucket-1', pathStyle: true },
    's3://bucket?endpoint=https://s3.example.com:9000&region=eu-west-1': store,
    's3://bucket?region=eu-west-1&endpoint=https%3A%2F%2Fs3.example.com%3A9000%2F': store,
    's3://bucket?endpoint=https://s3.example.com:9000&region=eu-west-1&path_style=false': {
      ...store,
      pathStyle: false,
    },
    's3://bucket?endpoint=http://127.0.0.1:1&region=RegionOne': {
      ...store,
      endpoint: 'http://127.0.0.1:1',
      region: 'RegionOne',
    },
    's3://bucket?region=eu-west-1&sse=AES256': { ...place, encryption: { algorithm: 'AES256', kmsKey: undefined } },
    's3://bucket?region=eu-west-1&sse=aws:kms&sse_kms_key=arn:aws:kms:eu-west-1:1:key/a': {
      ...place,
      encryption: { algorithm: 'aws:kms', kmsKey: 'arn:aws:kms:eu-west-1:1:key/a' },
    },
    's3://bucket?endpoint=https://s3.example.com:9000&region=eu-west-1&ca=/etc/s3-ca.pem': {
      ...store,
      caFile: '/etc/s3-ca.pem',
    },
  }
  for (const [text, value] of Object.entries(good)) assert.deepEqual(readers.blobsPlace(text), value, text)

  const region = 'region=eu-west-1'
  const bad: [text: string, says: RegExp][] = [
    ...['', 'Disk', 's3', 's3:bucket', 'S3://bucket', 'https://bucket', '/var/blobs', `s3://bucket?${region}#x`].map(
      (text): [string, RegExp] => [text, /^must be disk, or a URL such as s3:\/\/bucket\/prefix\?endpoint=/],
    ),
    ...['s3://', `s3:///prefix?${region}`, `s3://ab?${region}`, `s3://Bucket?${region}`, `s3://-bucket?${region}`].map(
      (text): [string, RegExp] => [text, /^must name a bucket of 3 to 63 lower-case letters/],
    ),
    [`s3://bu_cket?${region}`, /^must name a bucket/],
    [`s3://bucket:9000?${region}`, /^must name a bucket/],
    [`s3://key:secret@bucket?${region}`, /^must contain no credentials/],
    ...['a//b', '/a', 'a b', 'ä', 'a/../b', '.', 'a/%2e', 'a'.repeat(513)].map((prefix): [string, RegExp] => [
      `s3://bucket/${prefix}?${region}`,
      /^must have a prefix of letters/,
    ]),
    ['s3://bucket', /^must name a region/],
    ['s3://bucket?region=', /^must name a region/],
    ['s3://bucket?region=eu west', /^must name a region/],
    [`s3://bucket?${region}&${region}`, /^must have the parameter region only once/],
    [`s3://bucket?${region}&acl=private`, /^must have no parameters other than endpoint, region, path_style, sse/],
    [`s3://bucket?${region}&sse=true`, /^must have sse=AES256 or sse=aws:kms or/],
    [`s3://bucket?${region}&sse_kms_key=a`, /^must have sse=aws:kms or sse=aws:kms:dsse beside sse_kms_key/],
    [`s3://bucket?${region}&sse=AES256&sse_kms_key=a`, /^must have sse=aws:kms or/],
    [`s3://bucket?${region}&ca=/etc/ca.pem`, /^must have an endpoint with https:/],
    [`s3://bucket?endpoint=https://a.example&${region}&ca=ca.pem`, /^must have the absolute path/],
    [`s3://bucket?${region}&path_style=yes`, /^must have path_style=true or path_style=false/],
    ...['s3.example.com', 'ftp://s3.example.com', 'https://s3.example.com/path', 'https://a:b@s3.example.com', ''].map(
      (endpoint): [string, RegExp] => [`s3://bucket?endpoint=${endpoint}&${region}`, /^must have an endpoint such as/],
    ),
  ]
  for (const [text, says] of bad) {
    assert.throws(
      () => readers.blobsPlace(text),
      ({ message }) => says.test(message),
      text.slice(0, 80),
    )
  }
})

test('the URL of a mail server has a host, and a password that can be decoded', () => {
  const good = ['smtp://mail.example.com', 'smtps://user:100%25sure@mail.example.com:465', 'smtp://[::1]:25']
  const values = Object.fromEntries(good.map((text) => [text, new URL(text)]))
  assertReads(
    readers.smtpUrl,
    values,
    ['', 'mail.example.com', 'http://mail.example.com'],
    /^Error: must be a URL like/,
  )
  const broken = ['smtp://user:100%sure@mail.example.com', 'smtp://us%er:x@mail.example.com', 'smtp://user:%ff@mail']
  assertReads(readers.smtpUrl, {}, broken, /^Error: must have a user and a password .* write % as %25/)
})

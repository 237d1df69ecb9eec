import assert from 'node:assert/strict'
import { test } from 'node:test'
import * as readers from '../../src/config/readers.ts'

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
  assertReads(readers.postgresUrl, Object.fromEntries(good.map((url) => [url, url])), bad, /must be an address such as/)
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
    assert.throws(() => readers.proxyUrl(bad), /must be an address such as/, bad)
})

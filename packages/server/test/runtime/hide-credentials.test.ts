import assert from 'node:assert/strict'
import { Writable } from 'node:stream'
import { test } from 'node:test'
import { hideCredentials } from '../../src/runtime/hide-credentials.ts'
import { makeLogger } from '../../src/runtime/logger.ts'

const token = 'a1b2c3d4e5f60718293a4b5c6d7e8f90'

test('passwords and tokens inside URLs are hidden wherever the URLs stand in a text', () => {
  for (const [text, shown] of [
    ['postgres://ada:pa$$word@db:5432/assay', 'postgres://(hidden)@db:5432/assay'],
    ['postgresql://ada:p%40ss:word@@db/assay', 'postgresql://(hidden)@db/assay'],
    [`https://${token}@host/`, 'https://(hidden)@host/'],
    ['http://a:b@h1/x,http://c:d@h2/y', 'http://(hidden)@h1/x,http://(hidden)@h2/y'],
    [`see https://host/get/${token}/daily.hdb, then`, 'see https://host/get/(hidden)/daily.hdb, then'],
    [`https://host/get/${token}.`, 'https://host/get/(hidden).'],
    [
      'https://host/console/welcome#2c4mgdVZpmh54AGLsy5sLWKbMaNCC2EdJr2c3gbhTgs',
      'https://host/console/welcome#(hidden)',
    ],
    ['https://h/x?access_token=abc&days=3', 'https://h/x?access_token=(hidden)&days=3'],
    [
      'https://h/x?X-Amz-Signature=abc&X-Amz-Credential=d',
      'https://h/x?X-Amz-Signature=(hidden)&X-Amz-Credential=(hidden)',
    ],
    ['https://h/x?PASSWORD=a b', 'https://h/x?PASSWORD=(hidden) b'],
    ['{"url":"https://h/x?key=abc\\"","n":1}', '{"url":"https://h/x?key=(hidden)\\"","n":1}'],
    [
      'postgres://host/assay?user=ada&password=hush&sslmode=require',
      'postgres://host/assay?user=ada&password=(hidden)&sslmode=require',
    ],
  ] as const) {
    assert.equal(hideCredentials(text), shown)
  }
})

test('a text without credentials stays as it is', () => {
  for (const text of [
    's3://bucket/prefix?endpoint=https://s3.example.com:9000&region=eu-west-1',
    'https://host/v1/scans/01a1ddc9-0d35-7158-bd28-a6637690ad47',
    'write to ada@example.com',
    'https://unpkg.com/react@19/index.js?size=3',
    '/run/clamav/clamd.ctl',
    '',
  ]) {
    assert.equal(hideCredentials(text), text)
  }
})

test('a long text costs time in proportion to its length', () => {
  const text = `https://${'a/b?key=#'.repeat(50_000)}`
  assert.equal(hideCredentials(text).length > 0, true)
})

test('a log line hides them in messages, fields and errors', () => {
  const lines: string[] = []
  const output = new Writable({
    write(chunk, _encoding, done) {
      lines.push(String(chunk))
      done()
    },
  })
  const log = makeLogger({ level: 'info', region: 'test' }, output)
  const url = 'https://ada:hush@host/x?token=hush'
  log.warn({ url, err: new Error(`cannot reach ${url}`, { cause: new Error(url) }) }, `failed: ${url}`)
  assert.equal(lines.length, 1)
  assert.doesNotMatch(lines[0] ?? '', /hush/)
  assert.equal(JSON.parse(lines[0] ?? '').url, 'https://(hidden)@host/x?token=(hidden)')
})

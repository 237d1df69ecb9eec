import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { readCredential } from '../../src/domain/downloads/credentials.ts'
import {
  checkHeaders,
  type DownloadTarget,
  findTarget,
  readBucketTarget,
  readHostTarget,
  readTarget,
  showValues,
  toTargetText,
  type UrlStyle,
} from '../../src/domain/downloads/target.ts'

const getTarget = (target: DownloadTarget | string): DownloadTarget => {
  assert.ok(typeof target !== 'string', String(target))
  return target
}
const getHost = (text: string) => getTarget(readHostTarget(text))
const getBucket = (bucket: string, endpoint: string | null = null, style: UrlStyle = 'path') =>
  getTarget(readBucketTarget(bucket, 'eu-central-1', endpoint, style))

/** The target that a URL gets, as text, of those that are given. */
const find = (url: string, ...targets: DownloadTarget[]) => {
  const found = findTarget(
    new URL(url),
    targets.map((target) => ({ target })),
  )
  return found && toTargetText(found.target)
}

const enter = (host: string) =>
  readCredential({ kind: 'headers', host, headers: [{ name: 'A', value: 'b' }] }, { opensNetworks: true })

describe('the host of a credential', () => {
  const spellings: [entered: string, kept: string][] = [
    ['files.example.com', 'https://files.example.com'],
    [' FILES.Example.COM. ', 'https://files.example.com'],
    ['HTTPS://files.example.com:443/', 'https://files.example.com'],
    ['files.example.com:8443', 'https://files.example.com:8443'],
    ['http://files.example.com:80', 'http://files.example.com'],
    ['https://files.example.com:80', 'https://files.example.com:80'],
    ['*.Example.com', 'https://*.example.com'],
    ['bücher.example', 'https://xn--bcher-kva.example'],
    ['*.bücher.example', 'https://*.xn--bcher-kva.example'],
    ['[2001:DB8:0::1]:8443', 'https://[2001:db8::1]:8443'],
    ['http://0x7f.1', 'http://127.0.0.1'],
    ['minio', 'https://minio'],
  ]
  for (const [entered, kept] of spellings) {
    test(`${entered} has one spelling`, () => {
      const target = getHost(entered)
      assert.equal(toTargetText(target), kept)
      assert.deepEqual(readTarget(kept, null), target)
    })
  }

  const refused = [
    '',
    '*',
    '*.',
    '*.com',
    '*.co.uk',
    '*.github.io',
    '*.s3.amazonaws.com',
    '*.eu-central-1.amazonaws.com',
    '*.blob.core.windows.net',
    '*.windows.net',
    '*.azure.com',
    '*.a.run.app',
    '*.eu.ngrok.io',
    '*.eu-central-1.elasticbeanstalk.com',
    '*.lambda-url.eu-central-1.on.aws',
    '*.hf.space',
    '*.synology.me',
    '*.localhost',
    '*.127.0.0.1',
    '*.[::1]',
    '**.example.com',
    'a.*.example.com',
    '%2A.example.com',
    '*example.com',
    'files.*',
    'user@files.example.com',
    'https://user:secret@files.example.com',
    'files.example.com/path',
    'files.example.com?x',
    'files.example.com#x',
    'files.example.com\\@evil.example',
    'files.exa\tmple.com',
    'files.example.com\nevil.example',
    'ftp://files.example.com',
    'files..example.com',
    'xn--a.example',
    `${'a'.repeat(64)}.example`,
    'files.example.com:99999',
    'files.example.com:0',
  ]
  for (const entered of refused) {
    test(`${JSON.stringify(entered.slice(0, 40))} is refused`, () => {
      assert.ok('errors' in enter(entered))
    })
  }

  test('that a later rule refuses is still read from the database', () => {
    for (const kept of ['https://*.github.io', 'https://*.windows.net', 'https://*.127.0.0.1']) {
      assert.equal(toTargetText(getTarget(readTarget(kept, null))), kept)
    }
  })

  const exact = getHost('files.example.com')
  const matching: [url: string, isMatch: boolean][] = [
    ['https://files.example.com/a', true],
    ['https://FILES.example.com.:443/a', true],
    ['https://%66iles.example.com/a', true],
    ['http://files.example.com/a', false],
    ['http://files.example.com:443/a', false],
    ['https://files.example.com:8443/a', false],
    ['https://a.files.example.com/a', false],
    ['https://files.example.com.evil.example/a', false],
    ['https://evil.example/files.example.com', false],
    ['https://evil.example\\@files.example.com/', false],
    ['https://files.example.com@evil.example/', false],
    ['https://files。example.com/a', true],
    ['https://fıles.example.com/a', false],
  ]
  for (const [url, isMatch] of matching) {
    test(`${isMatch ? 'gets' : 'does not get'} ${url}`, () => assert.equal(find(url, exact) !== undefined, isMatch))
  }

  test('with a wildcard is every host below the domain, and not the domain itself', () => {
    const target = getHost('*.example.com')
    assert.ok(find('https://a.example.com/', target))
    assert.ok(find('https://a.b.example.com./', target))
    for (const url of [
      'https://example.com/',
      'https://aexample.com/',
      'https://evil-example.com/',
      'https://a.example.com:444/',
      'http://a.example.com/',
      'https://a.example.com.evil.example/',
    ]) {
      assert.equal(find(url, target), undefined, url)
    }
  })

  test('wins over a wildcard, a longer wildcard over a shorter one, and a bucket over both', () => {
    const wide = getHost('*.example.com')
    const long = getHost('*.b.example.com')
    const host = getHost('a.b.example.com')
    const bucket = getBucket('data', 'https://a.b.example.com')
    assert.equal(find('https://x.example.com/', wide, long, host), toTargetText(wide))
    assert.equal(find('https://x.b.example.com/', wide, long, host), toTargetText(long))
    assert.equal(find('https://a.b.example.com/', wide, long, host, bucket), toTargetText(host))
    assert.equal(find('https://a.b.example.com/data/x', host, bucket, wide), toTargetText(bucket))
    assert.equal(find('https://a.b.example.com/other/x', host, bucket, wide), toTargetText(host))
    // A URL of the bucket that may not be signed gets nothing, also not the headers of its host.
    assert.equal(find('https://a.b.example.com/data/x?X-Amz-Signature=0', host, bucket, wide), undefined)
  })
})

describe('the bucket of a credential', () => {
  const own = getBucket('data', 'https://s3.example.com:9000')
  const byHost = getBucket('data', 'https://s3.example.com:9000', 'host')
  const aws = getBucket('data')
  const urls: [url: string, target: DownloadTarget, isMatch: boolean][] = [
    ['https://s3.example.com:9000/data/a/b.txt', own, true],
    // A service that does not know this host name reads it as an object of the bucket "other".
    ['https://data.s3.example.com:9000/other/b.txt', own, false],
    ['https://data.s3.example.com:9000/a/b.txt', byHost, true],
    ['https://data.s3.example.com:9000/', byHost, false],
    ['https://s3.example.com:9000/data/a', byHost, false],
    ['https://s3.example.com:9000/data%2Fa', own, true],
    ['https://s3.example.com:9000/data/', own, false],
    ['https://s3.example.com:9000/data', own, false],
    ['https://s3.example.com:9000/database/a', own, false],
    ['https://s3.example.com:9000/other/a', own, false],
    ['https://other.s3.example.com:9000/data/a', own, false],
    ['https://s3.example.com/data/a', own, false],
    ['http://s3.example.com:9000/data/a', own, false],
    ['https://s3.example.com:9000/data/%2e%2e/other/a', own, false],
    ['https://s3.example.com:9000/data/x%2F..%2F..%2Fother/a', own, false],
    ['https://s3.example.com:9000/data/%ff', own, false],
    ['https://s3.example.com:9000/data/a?versionId=1', own, true],
    ['https://s3.example.com:9000/data/a?x-id=GetObject&response-content-type=a', own, true],
    ['https://s3.example.com:9000/data/a?acl', own, false],
    ['https://s3.example.com:9000/data/a?tagging=', own, false],
    ['https://s3.example.com:9000/data/a?versionId=1&torrent', own, false],
    ['https://s3.example.com:9000/data/a?versionid=1', own, false],
    ['https://s3.example.com:9000/data/a?X-Amz-Signature=00', own, false],
    ['https://s3.example.com:9000/data/a?AWSAccessKeyId=a&Signature=b', own, false],
    ['https://s3.eu-central-1.amazonaws.com/data/a', aws, true],
    ['https://data.s3.eu-central-1.amazonaws.com/a', aws, true],
    ['https://data.s3.dualstack.eu-central-1.amazonaws.com/a', aws, true],
    ['https://data.s3.amazonaws.com/a', aws, true],
    ['https://data.s3.us-east-1.amazonaws.com/a', aws, false],
    ['http://data.s3.amazonaws.com/a', aws, false],
    ['https://data.s3.amazonaws.com.evil.example/a', aws, false],
  ]
  for (const [url, target, isMatch] of urls) {
    test(`${isMatch ? 'gets' : 'does not get'} ${url}`, () => assert.equal(find(url, target) !== undefined, isMatch))
  }

  test('has one spelling, which the region is not part of', () => {
    assert.equal(toTargetText(aws), 's3://data')
    assert.equal(toTargetText(getBucket('data', 'S3.Example.com')), 's3://data?endpoint=https://s3.example.com')
    assert.deepEqual(readTarget(toTargetText(own), 'eu-central-1'), own)
    assert.deepEqual(readTarget(toTargetText(byHost), 'eu-central-1'), byHost)
    assert.notEqual(toTargetText(byHost), toTargetText(own))
    assert.equal(typeof readBucketTarget('data', 'eu-central-1', 'https://10.0.0.1', 'host'), 'string')
    for (const name of ['', 'ab', 'Data', 'a/b', 'a..b', '10.0.0.1', 'a?b', '-ab']) {
      assert.equal(typeof readBucketTarget(name, 'eu-central-1', null), 'string', name)
    }
    for (const region of ['', 'EU', 'a/b', 'a.b']) assert.equal(typeof readBucketTarget('data', region, null), 'string')
    for (const endpoint of ['https://s3.example.com/path', 'ftp://a', 'https://a@b', '*.example.com']) {
      assert.equal(typeof readBucketTarget('data', 'eu-central-1', endpoint), 'string', endpoint)
    }
  })
})

describe('the values of a credential', () => {
  const secret = 'sw0rdfish'

  test('are headers that neither frame the message nor ask for something else', () => {
    const fine = ['Authorization', 'Cookie', 'X-Token', 'PRIVATE-TOKEN', 'User-Agent', 'Accept', 'X-Amz-Security-Token']
    for (const name of fine) assert.deepEqual(checkHeaders([{ name, value: `Bearer ${secret}` }]), [], name)
    const forbidden = `Host Content-Length content-type Transfer-Encoding TE Trailer Connection Keep-Alive Upgrade Expect
      Proxy-Authorization Proxy-Connection Range If-None-Match If-Range Accept-Encoding X-HTTP-Method-Override Via`
    for (const name of forbidden.split(/\s+/)) {
      const [error] = checkHeaders([{ name, value: secret }])
      assert.match(error ?? '', /cannot be stored/, name)
    }
    const wrong: [name: string, value: string][] = [
      ['X Token', secret],
      ['X-Token:', secret],
      [`Authorization: ${secret}`, 'x'],
      ['', secret],
      ['X-Tökén', secret],
      ['X-Token', ''],
      ['X-Token', ` ${secret}`],
      ['X-Token', `${secret}\r\nHost: evil.example`],
      ['X-Token', `${secret}\u0000`],
      ['X-Token', `${secret}\tx`],
      ['X-Token', `${secret}é`],
    ]
    for (const [name, value] of wrong) {
      const errors = checkHeaders([{ name, value }])
      assert.equal(errors.length, 1, JSON.stringify(name))
      assert.ok(!errors.join().includes(secret), 'an error shows no value')
    }
  })

  test('are limited in number and size, and have each name once', () => {
    assert.equal(checkHeaders([]).length, 1)
    const many = Array.from({ length: 21 }, (_, i) => ({ name: `X-${i}`, value: secret }))
    assert.equal(checkHeaders(many).length, 1)
    assert.equal(checkHeaders(many.slice(1)).length, 0)
    assert.equal(checkHeaders([{ name: 'X-Long', value: 'a'.repeat(8000) }]).length, 1)
    const twice = checkHeaders([
      { name: 'Cookie', value: secret },
      { name: 'cookie', value: secret },
    ])
    assert.deepEqual(twice, ['The header cookie appears twice.'])
  })

  test('are shown as names with the beginning of their SHA-256', () => {
    const shown = showValues({ kind: 'headers', headers: [{ name: 'cookie', value: 'abc' }] })
    assert.deepEqual(shown, [{ name: 'cookie', fingerprint: 'ba7816bf' }])
    const key = showValues({ kind: 's3', accessKeyId: 'AKIA', secretAccessKey: secret })
    assert.ok(!JSON.stringify(key).includes(secret) && !JSON.stringify(key).includes('AKIA'))
  })

  test('for a plain http address need a network that the operator has opened', () => {
    const entered = { kind: 'headers', host: 'http://files.example.com', headers: [{ name: 'A', value: 'b' }] } as const
    const mutable = { ...entered, headers: [...entered.headers] }
    assert.ok('errors' in readCredential(mutable, { opensNetworks: false }))
    assert.ok('target' in readCredential(mutable, { opensNetworks: true }))
    const key = { accessKeyId: 'a/b', secretAccessKey: 'secret with blanks' }
    const bucket = {
      kind: 's3',
      bucket: 'data',
      region: 'eu-central-1',
      endpoint: 'http://minio:9000',
      style: undefined,
      ...key,
    } as const
    const read = readCredential(bucket, { opensNetworks: false })
    assert.deepEqual('errors' in read && Object.keys(read.errors), ['bucket', 'secret_access_key'])
    const ofAws = { ...bucket, endpoint: null, accessKeyId: 'AKIA0', secretAccessKey: 'x' }
    assert.ok('target' in readCredential(ofAws, { opensNetworks: false }))
    const temporary = readCredential({ ...ofAws, accessKeyId: 'ASIA0', style: 'host' }, { opensNetworks: false })
    assert.deepEqual('errors' in temporary && Object.keys(temporary.errors), ['url_style', 'secret_access_key'])
  })
})

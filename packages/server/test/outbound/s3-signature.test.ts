import assert from 'node:assert/strict'
import { after, before, describe, test } from 'node:test'
import { PutObjectCommand, S3Client } from '@aws-sdk/client-s3'
import { joinTestS3, lacksTestS3, type TestS3 } from '../../../../scripts/test-s3.ts'
import { makeAuthorizeDownload } from '../../src/domain/downloads/credentials.ts'
import { type CredentialValues, readBucketTarget, type UrlStyle } from '../../src/domain/downloads/target.ts'
import { signObject } from '../../src/outbound/s3-signature.ts'
import { assertFailed, getContent, newFetching } from './fetching.ts'

describe('a signature for S3', { skip: lacksTestS3() }, () => {
  const keys = ['plain.txt', 'a dir/ü (1)+2=3&4!.txt', "quotes'*~.txt", 'percent%41.txt']
  let store: TestS3
  before(async () => {
    store = await joinTestS3()
    const { accessKey: accessKeyId, secretKey: secretAccessKey, endpoint, region, bucket } = store
    const client = new S3Client({
      endpoint,
      region,
      forcePathStyle: true,
      credentials: { accessKeyId, secretAccessKey },
    })
    for (const key of keys) await client.send(new PutObjectCommand({ Bucket: bucket, Key: `cred/${key}`, Body: key }))
    client.destroy()
  })
  after(() => store.close())

  type Stored = { secretAccessKey?: string; region?: string; bucket?: string; endpoint?: string; style?: UrlStyle }

  const authorize = async (url: string, options: Stored = {}) => {
    const { port } = new URL(store.endpoint)
    const isVirtual = url.includes(store.storageDomain)
    const { bucket = store.bucket, region = store.region, style = isVirtual ? 'host' : 'path' } = options
    const { endpoint = isVirtual ? `http://${store.storageDomain}:${port}` : store.endpoint } = options
    const target = readBucketTarget(bucket, region, endpoint, style)
    assert.ok(typeof target !== 'string')
    const { secretAccessKey = store.secretKey } = options
    const key: CredentialValues = { kind: 's3', accessKeyId: store.accessKey, secretAccessKey }
    const credentials = { list: async () => [{ id: '1', target }], open: async () => key }
    const clock = { now: () => new Date() }
    const authorization = await makeAuthorizeDownload({ credentials, signObject, clock })('account', url)
    assert.ok(authorization === undefined || 'headers' in authorization)
    return authorization
  }
  const toNames = () => ({ [`${store.bucket}.${store.storageDomain}`]: () => ['127.0.0.1'] })

  test('opens private objects by path and by host, whatever their names are', async (t) => {
    const { port } = new URL(store.endpoint)
    const { fetch } = newFetching(t, { allowed: ['127.0.0.0/8'], names: toNames() })
    const starts = [`${store.endpoint}/${store.bucket}`, `http://${store.bucket}.${store.storageDomain}:${port}`]
    for (const start of starts) {
      for (const key of keys) {
        const url = `${start}/cred/${key.split('/').map(encodeURIComponent).join('/')}`
        assertFailed(await fetch(url), 'DownloadFailed', /status 40\d/)
        assert.equal(getContent(await fetch(url, { authorization: await authorize(url) })).whole?.toString(), key, url)
      }
      // Characters that need no encoding in a URL, and a query.
      const url = `${start}/cred/a%20dir/%C3%BC (1)+2=3&4!.txt?response-content-type=a%2Fb`.replace(/ /g, '%20')
      assert.equal(getContent(await fetch(url, { authorization: await authorize(url) })).whole?.toString(), keys[1])
    }
  })

  test('for another region gives an error that tells of the credential', async (t) => {
    const { fetch } = newFetching(t, { allowed: ['127.0.0.0/8'] })
    const url = `${store.endpoint}/${store.bucket}/cred/plain.txt`
    const authorization = await authorize(url, { region: 'mars-north-1' })
    const outcome = await fetch(url, { authorization })
    assertFailed(outcome, 'DownloadFailed', /status 400. The stored download credential was sent/)
  })

  test('is for objects of another bucket only if the host names of the service are declared, and wrongly', async (t) => {
    const { port } = new URL(store.endpoint)
    const { fetch } = newFetching(t, { allowed: ['127.0.0.0/8'], names: { 'mine.localhost': () => ['127.0.0.1'] } })
    // The service does not know this host name as that of a bucket, so it reads the bucket from the path.
    const url = `http://mine.localhost:${port}/${store.bucket}/cred/plain.txt`
    const mine = { bucket: 'mine', endpoint: `http://localhost:${port}` }
    assert.equal(await authorize(url, { ...mine, style: 'path' }), undefined)
    const authorization = await authorize(url, { ...mine, style: 'host' })
    assert.equal(getContent(await fetch(url, { authorization })).whole?.toString(), 'plain.txt')
  })

  test('with a wrong secret key gives an error without it', async (t) => {
    const { fetch } = newFetching(t, { allowed: ['127.0.0.0/8'] })
    const url = `${store.endpoint}/${store.bucket}/cred/plain.txt`
    const wrong = await authorize(url, { secretAccessKey: 'sw0rdfish' })
    const outcome = await fetch(url, { authorization: wrong })
    assertFailed(outcome, 'DownloadFailed', /status 403. The stored download credential was sent/)
    assert.ok(!JSON.stringify([outcome, wrong]).includes('sw0rdfish'))
  })
})

import assert from 'node:assert/strict'
import { after, before, describe, test } from 'node:test'
import { PutObjectCommand, S3Client } from '@aws-sdk/client-s3'
import { joinTestS3, lacksTestS3, type TestS3 } from '../../../../scripts/test-s3.ts'
import { makeAuthorizeDownload } from '../../src/domain/downloads/authorize.ts'
import { readBucketTarget } from '../../src/domain/downloads/target.ts'
import type { CredentialValues } from '../../src/domain/downloads/values.ts'
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

  const authorize = async (url: string, values: Partial<CredentialValues> = {}) => {
    const { port } = new URL(store.endpoint)
    const isVirtual = url.includes(store.storageDomain)
    const endpoint = isVirtual ? `http://${store.storageDomain}:${port}` : store.endpoint
    const target = readBucketTarget(store.bucket, store.region, endpoint)
    assert.ok(typeof target !== 'string')
    const key = { kind: 's3', accessKeyId: store.accessKey, secretAccessKey: store.secretKey, ...values } as const
    const row = { id: '1', target, createdAt: new Date(), createdBy: 'test' }
    const credentials = { list: async () => [row], open: async () => key as CredentialValues }
    return makeAuthorizeDownload({ credentials, signObject, clock: { now: () => new Date() } })('account', url)
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

  test('with a wrong secret key gives an error without it', async (t) => {
    const { fetch } = newFetching(t, { allowed: ['127.0.0.0/8'] })
    const url = `${store.endpoint}/${store.bucket}/cred/plain.txt`
    const wrong = await authorize(url, { secretAccessKey: 'sw0rdfish' })
    const outcome = await fetch(url, { authorization: wrong })
    assertFailed(outcome, 'DownloadFailed', /status 403. The stored download credential was sent/)
    assert.ok(!JSON.stringify([outcome, wrong]).includes('sw0rdfish'))
  })
})

import assert from 'node:assert/strict'
import { randomBytes } from 'node:crypto'
import dns from 'node:dns'
import { readFileSync } from 'node:fs'
import { createServer } from 'node:http'
import { after, before, describe, type TestContext, test } from 'node:test'
import { fileURLToPath } from 'node:url'
import { joinTestS3, lacksTestS3, type TestS3 } from '../../../../../scripts/test-s3.ts'
import { checkStore } from '../../../src/blobs/s3/s3-job-contents.ts'
import { keepAndRemove, master } from '../job-contents-contract.ts'
import { newCorner } from './store.ts'
import { listen, openStoreProxy } from './store-proxy.ts'

const certificates = new URL('../../outbound/certificates/', import.meta.url)
const caFile = fileURLToPath(new URL('origin.crt', certificates))
const cert = readFileSync(caFile, 'utf8')
const key = readFileSync(new URL('origin.key', certificates), 'utf8')

describe('a store', { skip: lacksTestS3() }, () => {
  let store: TestS3
  before(async () => {
    store = await joinTestS3()
  })
  after(() => store.close())

  /** Sets variables of the environment for the test. */
  function setEnvironment(t: TestContext, variables: Record<string, string>) {
    for (const [name, value] of Object.entries(variables)) {
      const old = process.env[name]
      process.env[name] = value
      t.after(() => {
        if (old === undefined) delete process.env[name]
        else process.env[name] = old
      })
    }
  }

  /** Answers like the metadata service of a container or an instance, with the credentials of the store. */
  async function openMetadataService(t: TestContext) {
    const asked: string[] = []
    const server = createServer((incoming, outgoing) => {
      asked.push(`${incoming.method} ${incoming.url}`)
      if (incoming.url === '/latest/api/token') return outgoing.end('token')
      if (incoming.url?.endsWith('/security-credentials/')) return outgoing.end('assay-role')
      const temporary = {
        Code: 'Success',
        AccessKeyId: store.accessKey,
        SecretAccessKey: store.secretKey,
        Token: 'session',
        Expiration: new Date(Date.now() + 3_600_000).toISOString(),
      }
      outgoing.end(JSON.stringify(temporary))
    })
    return { origin: `http://127.0.0.2:${await listen(t, server)}`, asked }
  }

  test('keeps content over HTTPS with an own authority, with credentials that the environment has', async (t) => {
    const { origin: endpoint } = await openStoreProxy(t, store.endpoint, { tls: { cert, key } })
    setEnvironment(t, { AWS_ACCESS_KEY_ID: store.accessKey, AWS_SECRET_ACCESS_KEY: store.secretKey })
    const corner = newCorner(t, store)
    Object.assign(corner.settings, { credentials: undefined, caFile })
    const { contents, requireUsable } = await corner.open(master, { endpoint })
    await requireUsable()
    await keepAndRemove(contents, randomBytes(6_000_000))
    assert.deepEqual(await corner.listNames(), [])
    assert.ok(corner.observed.every(({ outcome }) => outcome === 'ok'))
    assert.deepEqual(await checkStore({ ...corner.settings, endpoint }), [])
    const [fault] = await checkStore({ ...corner.settings, endpoint, caFile: undefined })
    assert.match(fault ?? '', /certificate/)
    await assert.rejects(checkStore({ ...corner.settings, endpoint, caFile: '/nowhere.pem' }), /\/nowhere\.pem of ca/)
  })

  test('is used with the role of a container', async (t) => {
    const { origin, asked } = await openMetadataService(t)
    setEnvironment(t, { AWS_CONTAINER_CREDENTIALS_FULL_URI: `${origin}/role` })
    const { settings } = newCorner(t, store)
    assert.deepEqual(await checkStore({ ...settings, credentials: undefined }), [])
    assert.deepEqual(asked, ['GET /role'])
  })

  test('is used with the role of an instance', async (t) => {
    const { origin, asked } = await openMetadataService(t)
    setEnvironment(t, { AWS_EC2_METADATA_SERVICE_ENDPOINT: origin })
    const { settings } = newCorner(t, store)
    assert.deepEqual(await checkStore({ ...settings, credentials: undefined }), [])
    assert(asked.includes('GET /latest/meta-data/iam/security-credentials/assay-role'), asked.join())
  })

  test('can have the bucket in the name of its host', async (t) => {
    const { port, seen } = await openStoreProxy(t, store.endpoint)
    const lookUp = dns.lookup as (...values: unknown[]) => unknown
    t.mock.method(dns, 'lookup', (name: string, ...more: unknown[]) =>
      lookUp(name.endsWith(store.storageDomain) ? '127.0.0.2' : name, ...more),
    )
    const { settings } = newCorner(t, store)
    const endpoint = `http://${store.storageDomain}:${port}`
    assert.deepEqual(await checkStore({ ...settings, endpoint, pathStyle: false }), [])
    assert(seen.every(({ headers }) => headers.host === `${store.bucket}.${store.storageDomain}:${port}`))
  })

  test('is asked to encrypt each object as the settings say', async (t) => {
    const { origin: endpoint, seen } = await openStoreProxy(t, store.endpoint)
    const { settings } = newCorner(t, store)
    const encryption = { algorithm: 'aws:kms', kmsKey: 'key-1' } as const
    const faults = await checkStore({ ...settings, endpoint, encryption })
    // Swift knows no such encryption, and says so instead of keeping the object without it.
    assert.match(faults.join('\n'), /s3:PutObject does not work: .*encryption.*not supported/i)
    const asking = seen.filter(({ headers }) => headers['x-amz-server-side-encryption'] === 'aws:kms')
    assert(asking.every(({ headers }) => headers['x-amz-server-side-encryption-aws-kms-key-id'] === 'key-1'))
    assert(asking.some(({ method }) => method === 'PUT'))
    assert(asking.some(({ method, url }) => method === 'POST' && url?.endsWith('?uploads=')))
  })

  test('that refuses a call is found, with the right that is missing, and the others are tried', async (t) => {
    const denied: Record<string, (method?: string, url?: string) => boolean> = {
      's3:ListBucket': (_, url) => url?.includes('list-type') ?? false,
      's3:GetObject': (method, url) => method === 'GET' && (url?.includes('x-id=GetObject') ?? false),
      's3:AbortMultipartUpload': (method, url) => method === 'DELETE' && (url?.includes('uploadId') ?? false),
      's3:ListBucketMultipartUploads': (method, url) => method === 'GET' && (url?.includes('uploads') ?? false),
      's3:DeleteObject': (method, url) => method === 'DELETE' && (url?.includes('x-id=DeleteObject') ?? false),
    }
    for (const [right, matches] of Object.entries(denied)) {
      const { origin: endpoint, seen } = await openStoreProxy(t, store.endpoint, {
        isDenied: ({ method, url }) => matches(method, url),
      })
      const { settings } = newCorner(t, store)
      const faults = await checkStore({ ...settings, endpoint })
      assert(faults[0]?.startsWith(right), `${right}: ${faults.join()}`)
      assert.equal(faults.length, right === 's3:GetObject' ? 2 : 1, faults.join())
      assert(seen.some(({ method, url }) => method === 'DELETE' && url?.includes('DeleteObject')))
    }
  })

  test('that leaves nothing of the check behind', async (t) => {
    const corner = newCorner(t, store)
    assert.deepEqual(await checkStore(corner.settings), [])
    assert.deepEqual([...(await corner.listNames()), ...(await corner.listUploads())], [])
  })

  test('that fails in the middle of an upload keeps no part of it', async (t) => {
    const { origin: endpoint } = await openStoreProxy(t, store.endpoint, {
      isDenied: ({ method, url }) => method === 'PUT' && (url?.includes('partNumber') ?? false),
    })
    const corner = newCorner(t, store)
    const faults = await checkStore({ ...corner.settings, endpoint })
    assert(faults[0]?.startsWith('s3:PutObject, for uploads in parts'), faults.join())
    assert.deepEqual([...(await corner.listNames()), ...(await corner.listUploads())], [])
  })
})

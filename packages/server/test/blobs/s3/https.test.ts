import assert from 'node:assert/strict'
import { randomBytes } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { request } from 'node:http'
import { createServer } from 'node:https'
import { buffer as readAll } from 'node:stream/consumers'
import { test } from 'node:test'
import { getCACertificates, setDefaultCACertificates } from 'node:tls'
import { joinTestS3, lacksTestS3 } from '../../../../../scripts/test-s3.ts'
import { master, owner, take } from '../job-contents-contract.ts'
import { newCorner } from './store.ts'

const certificates = new URL('../../outbound/certificates/', import.meta.url)
const cert = readFileSync(new URL('origin.crt', certificates), 'utf8')
const key = readFileSync(new URL('origin.key', certificates), 'utf8')
const host = '127.0.0.2'

test('content goes over HTTPS too, with credentials that the environment has', { skip: lacksTestS3() }, async (t) => {
  const store = await joinTestS3()
  t.after(store.close)
  const listener = createServer({ cert, key }, (incoming, outgoing) => {
    const { method, headers, url = '/' } = incoming
    const onward = request(new URL(url, store.endpoint), { method, headers }, (response) => {
      outgoing.writeHead(response.statusCode ?? 500, response.headers)
      response.pipe(outgoing)
    })
    incoming.pipe(onward)
  })
  await new Promise<void>((resolve) => listener.listen(0, host, resolve))
  t.after(() => {
    listener.close()
    listener.closeAllConnections()
  })
  setDefaultCACertificates([...getCACertificates('default'), cert])
  process.env.AWS_ACCESS_KEY_ID = store.accessKey
  process.env.AWS_SECRET_ACCESS_KEY = store.secretKey
  const corner = newCorner(t, store)
  Object.assign(corner.settings, { credentials: undefined })
  const endpoint = `https://${host}:${(listener.address() as { port: number }).port}`
  const { contents, requireUsable } = await corner.open(master, { endpoint })
  await requireUsable()
  const clear = randomBytes(6_000_000)
  const content = await take(contents, clear)
  const kept = await content.persist(owner)
  const opened = await contents.open(kept, content, owner)
  assert.ok((await readAll(opened.read())).equals(clear))
  await opened.release()
  await contents.remove(kept)
  assert.deepEqual(await corner.listNames(), [])
  assert.ok(corner.observed.every(({ outcome }) => outcome === 'ok'))
})

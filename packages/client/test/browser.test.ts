import assert from 'node:assert/strict'
import { existsSync, readFileSync } from 'node:fs'
import { createServer } from 'node:http'
import { join, normalize } from 'node:path'
import { type TestContext, test } from 'node:test'
import { eicar } from '../../../acceptance/support/archives.ts'
import { alreadyTested } from '../../../acceptance/support/scanning.ts'
import { startService, withoutImages } from '../../../acceptance/support/start-service.ts'
import { buildClient } from './build-client.ts'
import { openChromium } from './chromium.ts'
import { listen } from './fake-server.ts'

type Sdk = typeof import('@assay/client')
type Seen = {
  statuses: string[]
  lastProgress: object | undefined
  remaining: number | undefined
  names: string[]
  webhook: string
}

test('the built client works in a page: scans with progress, errors, and webhooks', {
  skip: alreadyTested,
}, async (t) => {
  const browser = await openChromium(t)
  if (browser === undefined) return
  const origin = await servePage(t, buildClient())
  const service = await startService({ ...withoutImages, ASSAY_CORS_ORIGINS: origin })
  t.after(() => service.stop())
  const page = await browser.newPage()
  await page.goto(origin)
  const { vectors } = JSON.parse(readFileSync(new URL('../webhook-vectors.json', import.meta.url), 'utf8'))

  const seen = await page.evaluate(useClient, {
    baseUrl: service.url,
    apiKey: service.apiKey,
    virus: eicar.toString('latin1'),
    vector: vectors[0],
  })
  assert.deepEqual(seen, {
    statuses: ['threat', 'threat', 'threat', 'clean', 'threat'],
    lastProgress: { sent: 5_000_000, total: 5_000_000 },
    remaining: seen.remaining,
    names: ['Unauthorized', 'ValidationFailed', 'Aborted', 'ConnectionFailed', 'UnusableInput'],
    webhook: 'threat',
  } satisfies Seen)
  assert(Number(seen.remaining) > 0, 'the page can read the credits')
})

type Given = {
  baseUrl: string
  apiKey: string
  virus: string
  vector: { body: string; headers: Record<string, string>; secret: string; at: string }
}

/** Calls the client; this function runs in the page. */
async function useClient({ baseUrl, apiKey, virus, vector }: Given): Promise<Seen> {
  const path = '/client/index.js'
  const { newClient, verifyWebhook } = (await import(path)) as Sdk
  const { malware, account } = newClient({ apiKey, baseUrl })
  let lastProgress: object | undefined
  const blob = new Blob([virus])
  const scans = [
    await malware.scanFile(blob),
    await malware.scanFile(new File([virus], 'eicar.com'), { fileName: 'given.com' }),
    await malware.scanFile(blob.stream()),
    await malware.scanFile(new Uint8Array(5_000_000), {
      onProgress: (progress) => {
        lastProgress = progress
      },
    }),
    await malware.waitFor((await malware.submitFile(blob)).id),
  ]
  const failures = [
    () => newClient({ apiKey: 'wrong', baseUrl }).ping(),
    () => malware.scanUrl('ftp://x'),
    () => malware.scanFile(blob, { signal: AbortSignal.abort() }),
    () => newClient({ apiKey, baseUrl: 'http://127.0.0.1:1', retries: 0 }).malware.scanFile(blob),
    () => malware.scanFile('/etc/passwd'),
  ]
  const names: string[] = []
  for (const fail of failures) {
    const error = await fail().then(
      () => new Error('nothing failed'),
      (reason: Error) => reason,
    )
    names.push(error.name)
  }
  const body = new TextEncoder().encode(vector.body)
  const webhook = await verifyWebhook(body, vector.headers, vector.secret, { at: new Date(vector.at) })
  return {
    statuses: scans.map(({ status }) => status),
    lastProgress,
    remaining: (await account()).meta.credits?.remaining,
    names,
    webhook: webhook.status,
  }
}

/** Serves an empty page and the files of the built client. */
async function servePage(t: TestContext, dir: string): Promise<string> {
  const server = createServer((request, response) => {
    const [, path] = /^\/client(\/[\w./-]+\.js)$/.exec(request.url ?? '') ?? []
    const file = path === undefined ? undefined : join(dir, normalize(path))
    if (file === undefined) response.writeHead(200, { 'content-type': 'text/html' }).end('<!doctype html>')
    else if (!existsSync(file)) response.writeHead(404).end()
    else response.writeHead(200, { 'content-type': 'text/javascript' }).end(readFileSync(file))
  })
  return `http://${await listen(t, server)}`
}

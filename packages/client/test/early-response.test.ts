import assert from 'node:assert/strict'
import { mkdtempSync, readdirSync, readlinkSync, rmSync, truncateSync, writeFileSync } from 'node:fs'
import { createServer, type Server } from 'node:http'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, before, type TestContext, test } from 'node:test'
import { newClient, type Progress } from '@assay/client'
import { waitUntil } from '../../../acceptance/support/wait-until.ts'
import { listen } from './fake-server.ts'

const dir = mkdtempSync(join(tmpdir(), 'assay-client-'))
const path = join(dir, 'large.bin')
const size = 50 * 1024 * 1024
before(() => {
  writeFileSync(path, '')
  truncateSync(path, size)
})
after(() => rmSync(dir, { recursive: true, force: true }))

/** A server that reads 1 MB of the body, calls `act`, and reads nothing more. */
async function openStoppingServer(t: TestContext, act: (respond: () => void) => void) {
  const problem = { status: 422, traceId: '00-1-1-01', errors: { file: ['file must not be larger than 1 MB.'] } }
  const server: Server = createServer((request, response) => {
    let received = 0
    request.on('data', (chunk: Buffer) => {
      received += chunk.length
      if (received < 1024 * 1024) return
      request.pause()
      act(() => {
        response.writeHead(422).end(JSON.stringify(problem))
        // Reading lets the server notice that the connection closes.
        request.removeAllListeners('data').resume()
      })
    })
  })
  // The server must not close idle connections itself: the test checks that the client does.
  server.keepAliveTimeout = 0
  return {
    baseUrl: `http://${await listen(t, server)}`,
    hasNoConnection: () =>
      new Promise<boolean>((resolve, reject) =>
        server.getConnections((error, count) => (error ? reject(error) : resolve(count === 0))),
      ),
  }
}

const isOpen = () =>
  readdirSync('/proc/self/fd').some((fd) => {
    try {
      return readlinkSync(`/proc/self/fd/${fd}`) === path
    } catch {
      return false
    }
  })

test('a response during an upload stops the upload, and the caller gets that response', async (t) => {
  const { baseUrl, hasNoConnection } = await openStoppingServer(t, (respond) => respond())
  const progress: Progress[] = []
  const scan = newClient({ apiKey: 'key', baseUrl }).malware.scanFile(path, {
    onProgress: (step) => progress.push(step),
  })
  await assert.rejects(scan, { name: 'ValidationFailed', message: 'file must not be larger than 1 MB.' })
  assert((progress.at(-1)?.sent ?? 0) < size, 'the rest was not sent')
  assert(!isOpen(), 'the file is closed')
  await waitUntil('the connection to be closed', hasNoConnection)
})

test('a stalled upload can be aborted, and its file is closed', async (t) => {
  const { baseUrl } = await openStoppingServer(t, () => {})
  const controller = new AbortController()
  let sent = 0
  const scan = newClient({ apiKey: 'key', baseUrl }).malware.scanFile(path, {
    signal: controller.signal,
    onProgress: (progress) => {
      sent = progress.sent
    },
  })
  scan.catch(() => {})
  let before = -1
  await waitUntil('the upload to stall', () => {
    const isStalled = sent > 0 && sent === before
    before = sent
    return isStalled
  })
  assert(sent < size)
  controller.abort()
  await assert.rejects(scan, { name: 'Aborted' })
  await waitUntil('the file to be closed', () => !isOpen())
})

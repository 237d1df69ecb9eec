import assert from 'node:assert/strict'
import { mkdtempSync, readdirSync, readlinkSync, rmSync, truncateSync, writeFileSync } from 'node:fs'
import { createServer, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, before, type TestContext, test } from 'node:test'
import { newClient, type Progress } from '@assay/client'
import { waitUntil } from '../../../acceptance/support/wait-until.ts'

const dir = mkdtempSync(join(tmpdir(), 'assay-client-'))
const path = join(dir, 'large.bin')
const size = 50 * 1024 * 1024
before(() => {
  writeFileSync(path, '')
  truncateSync(path, size)
})
after(() => rmSync(dir, { recursive: true, force: true }))

/** Takes a megabyte, then does this, and has no use for the rest. */
async function openStubborn(t: TestContext, act: (respond: () => void) => void) {
  const problem = { status: 422, traceId: '00-1-1-01', errors: { file: ['file must not be larger than 1 MB.'] } }
  const server: Server = createServer((request, response) => {
    let received = 0
    request.on('data', (chunk: Buffer) => {
      received += chunk.length
      if (received < 1024 * 1024) return
      request.pause()
      act(() => {
        response.writeHead(422).end(JSON.stringify(problem))
        // So that it sees the end of the connection.
        request.removeAllListeners('data').resume()
      })
    })
  })
  // It closes nothing by itself.
  server.keepAliveTimeout = 0
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  t.after(() => {
    server.close()
    server.closeAllConnections()
  })
  return {
    baseUrl: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    isAlone: () =>
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

test('an answer in the middle of an upload ends it, and is what the caller gets', async (t) => {
  const { baseUrl, isAlone } = await openStubborn(t, (respond) => respond())
  const told: Progress[] = []
  const scan = newClient({ apiKey: 'key', baseUrl }).malware.scanFile(path, {
    onProgress: (progress) => told.push(progress),
  })
  await assert.rejects(scan, { name: 'ValidationFailed', message: 'file must not be larger than 1 MB.' })
  assert((told.at(-1)?.sent ?? 0) < size, 'the rest was not sent')
  assert(!isOpen(), 'the file is closed')
  await waitUntil('the connection to be closed', isAlone)
})

test('an upload that the network no longer takes is aborted at once, and its file closed', async (t) => {
  const { baseUrl } = await openStubborn(t, () => {})
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

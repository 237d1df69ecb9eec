import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import type { Scan } from '../../src/domain/scans/scan.ts'
import type { Connection } from '../../src/listeners/connection.ts'
import { serveIcap } from '../../src/listeners/icap/serve-icap.ts'
import { type ListenerScan, mostBytes } from '../../src/listeners/listener-scan.ts'

const content = Buffer.from('0123456789abcdef'.repeat(40_000))
/** A byte for every 32 KB of 640,000 bytes. */
const beginning = content.toString('latin1', 0, 19)
const piece = 40_000

type Options = { status: Scan['status']; type?: string; headers?: string; onError?: 'block' | 'allow'; fails?: boolean }

/** Sends a response in pieces, and returns what the listener had written before the scan ended, and at the end. */
async function pass({ status, type = 'application/zip', headers = '', onError = 'block', fails = false }: Options) {
  const writes: Buffer[] = []
  const read = () => Buffer.concat(writes).toString('latin1')
  let before = ''
  const scan = {
    write() {},
    async finish() {
      before = read()
      if (fails) throw new Error('The engine is gone')
      return {
        scan: { id: 'id', status, signals: ['Virus:Some.Threat'], metadata: null },
        content: { read: () => [content] },
      }
    },
    takeContent: async () => ({ read: () => [content] }),
    abort: async () => {},
  } as unknown as ListenerScan
  const http = `HTTP/1.1 200 OK\r\nContent-Type: ${type}\r\n\r\n`
  const head = `RESPMOD icap://x/avscan ICAP/1.0\r\n${headers}Encapsulated: res-hdr=0, res-body=${http.length}\r\n\r\n`
  const [, preview] = /Preview: (\d+)/.exec(headers) ?? []
  const connection: Connection = {
    address: '192.0.2.1',
    async *chunks() {
      yield Buffer.from(head + http)
      for (let at = 0; at < content.length; at += piece) {
        if (preview !== undefined && at >= Number(preview) && !read().includes('100 Continue'))
          yield Buffer.from('0\r\n\r\n')
        const bytes = content.subarray(at, at + piece)
        yield Buffer.concat([Buffer.from(`${bytes.length.toString(16)}\r\n`), bytes, Buffer.from('\r\n')])
      }
      yield Buffer.from('0\r\n\r\n')
    },
    send: async (bytes) => void writes.push(Buffer.from(bytes)),
    expectWithin() {},
    expectContent() {},
    expectNothing() {},
    setFailureReply() {},
    noteVerdict() {},
    setBusy() {},
    isStopping: () => false,
  }
  await serveIcap(connection, {
    scans: { maxBytes: mostBytes, begin: async () => scan },
    reportUnscanned() {},
    onError,
    trickles: true,
    maxConnections: 1,
    findTag: () => '"tag"',
    server: 'Assay',
  })
  return { before, all: read() }
}

/** The body of the HTTP message in an ICAP response, and whether it is complete. */
function toBody(response: string): { body: string; isComplete: boolean } {
  let rest = response.slice(response.indexOf('\r\n\r\n', response.indexOf('HTTP/1.1')) + 4)
  let body = ''
  for (;;) {
    const [line = '', size = ''] = /^([0-9a-f]+)\r\n/.exec(rest) ?? []
    if (line === '') return { body, isComplete: false }
    if (size === '0') return { body, isComplete: true }
    const bytes = Number.parseInt(size, 16)
    body += rest.slice(line.length, line.length + bytes)
    rest = rest.slice(line.length + bytes + 2)
  }
}

describe('an ICAP response that begins before its verdict', () => {
  test('is a byte for every 32 KB, and the rest when the content is clean', async () => {
    const { before, all } = await pass({ status: 'clean' })
    assert.deepEqual(toBody(before), { body: beginning, isComplete: false })
    assert.deepEqual(toBody(all), { body: content.toString('latin1'), isComplete: true })
    assert.equal(all.split('ICAP/1.0').length, 2, 'one response')
  })

  test('breaks off when the content is not clean or was not scanned, and tells nothing more of it', async () => {
    for (const options of [{ status: 'threat' }, { status: 'error' }, { status: 'clean', fails: true }] as const) {
      const { before, all } = await pass(options)
      assert.equal(all, before)
      assert.deepEqual(toBody(all), { body: beginning, isComplete: false })
    }
  })

  test('is completed for content that the operator lets through', async () => {
    const { all } = await pass({ status: 'error', onError: 'allow' })
    assert.deepEqual(toBody(all), { body: content.toString('latin1'), isComplete: true })
  })

  test('does not begin within a preview, nor for a client that takes 204', async () => {
    const inPreview = await pass({ status: 'clean', headers: 'Preview: 120000\r\n' })
    assert.match(inPreview.all, /^ICAP\/1\.0 100 Continue\r\n\r\nICAP\/1\.0 200 OK\r\n/)
    assert.deepEqual(toBody(inPreview.all), { body: content.toString('latin1'), isComplete: true })
    const with204 = await pass({ status: 'clean', headers: 'Allow: 204\r\n' })
    assert.equal(with204.before, '')
    assert.match(with204.all, /^ICAP\/1\.0 204 /)
  })

  test('has at most 15 bytes of content that browsers render', async () => {
    for (const type of ['text/html', 'image/svg+xml', 'application/xhtml+xml', 'text/javascript', 'application/pdf']) {
      const { before } = await pass({ status: 'threat', type })
      assert.equal(toBody(before).body.length, 15, type)
    }
  })
})

import assert from 'node:assert/strict'
import { after, before, describe, test } from 'node:test'
import { Problem, type Refusal } from '../../src/domain/problem.ts'
import type { Scan } from '../../src/domain/scans/scan.ts'
import type { Connection, LastReplies } from '../../src/listeners/connection.ts'
import { timeoutResponse, toFailureResponse } from '../../src/listeners/icap/icap-response.ts'
import { serveIcap } from '../../src/listeners/icap/serve-icap.ts'
import { type Listener, openListener } from '../../src/listeners/listener.ts'
import {
  fullFailure,
  type ListenerScan,
  type ListenerScans,
  mostBytes,
  type OnFailure,
} from '../../src/listeners/listener-scan.ts'
import { serveClamd, toClamdReplies } from '../../src/listeners/serve-clamd.ts'
import * as clients from '../support/listener-clients.ts'
import { silentLog } from '../support/silent-log.ts'

type Result = Pick<Scan, 'id' | 'status' | 'signals' | 'metadata'>

const newResult = (status: Scan['status'], ...signals: string[]): Result => ({
  id: 'the-scan',
  status,
  signals,
  metadata: null,
})

/** Results and errors by the content that asks for them. */
const results: Record<string, Result | Error> = {
  clean: newResult('clean'),
  threat: newResult('threat', 'Virus:Some.Threat'),
  colon: newResult('threat', 'Virus:HEUR:Some\nThreat; x', 'Virus:Other'),
  encrypted: newResult('error', 'Error:EncryptedContent'),
  container: newResult('error', 'Error:UnsupportedContainer', 'Error:ScanLimitExceeded'),
  limit: newResult('error', 'Error:ScanLimitExceeded'),
  nameless: newResult('error'),
  pending: newResult('pending'),
}
const notScanned = ['encrypted', 'container', 'limit', 'nameless', 'pending']

const refusals: Record<string, Refusal> = {
  engine: { kind: 'engine-unavailable', detail: 'away' },
  busy: { kind: 'overloaded', retryAfterSeconds: 5 },
  rate: { kind: 'rate-limited', retryAfterSeconds: 7 },
  broke: { kind: 'out-of-credit' },
  key: { kind: 'unauthenticated' },
}
const failures = [...Object.keys(refusals), 'fault']
const findError = (name: string) => {
  const refusal = refusals[name]
  return refusal === undefined ? new Error(name) : new Problem(refusal)
}

/** Scans whose content names their result. With `refused`, they do not even begin. */
function newScans(findRefused: () => string | undefined): ListenerScans {
  return {
    maxBytes: mostBytes,
    async begin() {
      const refused = findRefused()
      if (refused !== undefined) throw findError(refused)
      let text = ''
      return {
        write(chunk: Buffer) {
          text += chunk.toString('latin1')
        },
        async finish() {
          const result = results[text.trim()]
          if (result === undefined) throw findError(text.trim())
          return { scan: result, content: { read: () => [Buffer.from(text)] } }
        },
        takeContent: async () => ({ read: () => [Buffer.from(text)] }),
        abort: async () => {},
      } as unknown as ListenerScan
    },
  }
}

let refused: string | undefined
/** Errors of the listeners themselves. */
const faults: unknown[] = []
const scans = newScans(() => refused)
const icapDeps = {
  scans,
  reportUnscanned() {},
  onError: 'block' as const,
  trickles: false,
  maxConnections: 10,
  findTag: () => '"tag"',
  server: 'Assay',
}
const serveClamdWith = (onFailure: OnFailure) => (connection: Connection) =>
  serveClamd(connection, {
    scans,
    onFailure,
    findVersion: () => 'ClamAV',
    countLoad: () => ({ connections: 0, maxConnections: 1, waiting: 0 }),
  })

const icapReplies = { timeout: timeoutResponse, fail: toFailureResponse }

function open(serve: (connection: Connection) => Promise<void>, replies: LastReplies, maxConnections = 50) {
  const onFailure = (error: unknown) => void faults.push(error)
  const address = { host: '127.0.0.1', port: 0 }
  return openListener({ address, maxConnections, serve, replies, onFailure, onRejected() {}, log: silentLog })
}

/** Content with a result: as it is, and long enough that its end comes after a preview. */
const toContents = (name: string) => [Buffer.from(name), Buffer.from(name.padEnd(5000))]

describe('clients of the listeners', () => {
  let error: Listener
  let found: Listener
  let icap: Listener
  let full: Listener[]
  before(async () => {
    error = await open(serveClamdWith('error'), toClamdReplies('error'))
    found = await open(serveClamdWith('found'), toClamdReplies('found'))
    icap = await open((connection) => serveIcap(connection, icapDeps), icapReplies)
    full = [
      await open(serveClamdWith('found'), toClamdReplies('found'), 0),
      await open((connection) => serveIcap(connection, icapDeps), icapReplies, 0),
    ]
  })
  after(async () => {
    for (const listener of [error, found, icap, ...full]) await listener.close()
    assert.deepEqual(faults, [])
  })

  const clamdClients = {
    'oCIS and OpenCloud': clients.scanAsOcisClamd,
    Discourse: clients.scanAsDiscourse,
    Nextcloud: clients.scanAsNextcloudClamd,
    rspamd: clients.scanAsRspamdClamd,
    Mattermost: clients.scanAsMattermost,
  }
  for (const [name, scan] of Object.entries(clamdClients)) {
    test(`${name} over clamd: what is not clean is infected`, async () => {
      for (const listener of [error, found]) {
        for (const content of toContents('clean')) assert.equal(await scan(listener.port, content), 'accepted')
        for (const what of ['threat', 'colon', ...notScanned]) {
          for (const content of toContents(what)) assert.equal(await scan(listener.port, content), 'infected', what)
        }
      }
      for (const what of failures) assert.equal(await scan(found.port, Buffer.from(what)), 'infected', what)
      const [fullClamd] = full
      assert.equal(await scan(fullClamd?.port ?? 0, Buffer.alloc(300_000)), 'infected')
    })
  }

  test('Nextcloud and Mattermost tell an ERROR of clamd from clean', async () => {
    for (const what of failures) {
      assert.equal(await clients.scanAsNextcloudClamd(error.port, Buffer.from(what)), 'failed', what)
      assert.equal(await clients.scanAsMattermost(error.port, Buffer.from(what)), 'infected', what)
    }
  })

  const ocis = clients.scanAsOcisIcap
  test('oCIS and OpenCloud over ICAP: what is not clean is infected, refusals, faults and overload too', async () => {
    for (const content of toContents('clean')) assert.equal(await ocis(icap.port, content), 'accepted')
    for (const what of ['threat', 'colon', ...notScanned, ...failures]) {
      for (const content of toContents(what)) assert.equal(await ocis(icap.port, content), 'infected', what)
    }
    assert.equal(await ocis(icap.port, Buffer.from('clean'), 'no-such-service'), 'infected')
    assert.equal(await ocis(full[1]?.port ?? 0, Buffer.alloc(300_000)), 'infected')
    for (const what of failures) {
      refused = what
      for (const content of toContents('clean')) assert.equal(await ocis(icap.port, content), 'infected', what)
    }
    refused = undefined
  })

  test('rspamd over ICAP tells clean, infected and failed apart', async () => {
    const scan = clients.scanAsRspamdIcap
    for (const content of toContents('clean')) assert.equal(await scan(icap.port, content), 'accepted')
    for (const what of ['threat', 'colon', ...notScanned]) {
      assert.equal(await scan(icap.port, Buffer.from(what)), 'infected', what)
    }
    for (const what of failures) assert.equal(await scan(icap.port, Buffer.from(what)), 'failed', what)
  })

  test('Nextcloud over ICAP: avscan-errors tells unscannable files from infected ones', async () => {
    const scan = clients.scanAsNextcloudIcap
    for (const service of ['avscan', 'avscan-errors']) {
      assert.equal(await scan(icap.port, Buffer.from('clean'), service), 'accepted')
      for (const what of ['threat', 'colon'])
        assert.equal(await scan(icap.port, Buffer.from(what), service), 'infected')
      for (const what of failures) assert.equal(await scan(icap.port, Buffer.from(what), service), 'failed', what)
    }
    for (const what of ['encrypted', 'container', 'limit']) {
      assert.equal(await scan(icap.port, Buffer.from(what), 'avscan'), 'infected', what)
      assert.equal(await scan(icap.port, Buffer.from(what), 'avscan-errors'), 'unscannable', what)
    }
    // A reason without a code of Nextcloud is a failure, which does not complete the upload.
    for (const what of ['nameless', 'pending']) {
      assert.equal(await scan(icap.port, Buffer.from(what), 'avscan-errors'), 'failed', what)
    }
  })

  test('over ICAP an answer for content that is not clean is one write', async () => {
    for (const service of ['avscan', 'avscan-errors']) {
      for (const what of ['threat', ...notScanned, ...failures]) {
        const [answer = '', ...more] = await sendAlone(service, what)
        assert.deepEqual(more, [], what)
        const [head = '', ...body] = answer.split('\r\n\r\n')
        assert(answer.endsWith('\r\n\r\n'))
        assert.match(head, /\r\nEncapsulated: [^\r\n]*$/)
        assert.equal(body.length > 1, head.startsWith('ICAP/1.0 200 '), 'a page is in the same write')
        assert.equal(
          /X-Infection-Found: Type=[02]; Resolution=2; Threat=\S+;\r\n/.test(head),
          !head.includes('X-Error-Code'),
        )
      }
    }
  })

  test('over ICAP an error without a body closes the connection, a page does not', async () => {
    const closes = async (service: string, what: string) =>
      /^Connection: close\r$/m.test((await sendAlone(service, what, ''))[0] ?? '')
    assert.equal(await closes('avscan', 'encrypted'), false)
    assert.equal(await closes('avscan', 'clean'), false)
    for (const service of ['avscan', 'avscan-errors']) assert.equal(await closes(service, 'engine'), true)
    assert.equal(await closes('avscan-errors', 'encrypted'), true)
  })

  test('over ICAP the reason stands in the headers', async () => {
    const [blocked = ''] = await sendAlone('avscan', 'encrypted')
    assert.match(blocked, /^ICAP\/1\.0 200 OK\r\n/)
    assert.match(blocked, /X-Infection-Found: Type=2; Resolution=2; Threat=Assay\.NotScanned\.EncryptedContent;\r\n/)
    assert.match(blocked, /X-Virus-ID: Assay\.NotScanned\.EncryptedContent\r\n/)
    const [failed = ''] = await sendAlone('avscan', 'engine')
    assert.match(failed, /^ICAP\/1\.0 500 .*Threat=Assay\.NotScanned\.EngineFailed;/s)
    const [busy = ''] = await sendAlone('avscan', 'busy')
    assert.match(busy, /^ICAP\/1\.0 503 .*Threat=Assay\.NotScanned\.Overloaded;.*Retry-After: 5\r\n/s)
    const [code = ''] = await sendAlone('avscan-errors', 'encrypted')
    assert.match(code, /^ICAP\/1\.0 500 .*X-Error-Code: password_protected\r\n/s)
    const [rate = ''] = await sendAlone('avscan-errors', 'rate')
    assert.match(rate, /^ICAP\/1\.0 503 .*X-Error-Code: rate_limited\r\nRetry-After: 7\r\n/s)
    for (const answer of [toFailureResponse(fullFailure), timeoutResponse])
      assert.match(answer, /X-Infection-Found: Type=2; /)
  })
})

/** Serves one ICAP request without a socket, and returns each write. */
async function sendAlone(service: string, content: string, icap = 'Connection: close\r\n'): Promise<string[]> {
  const writes: string[] = []
  const request = `REQMOD icap://x/${service} ICAP/1.0\r\n${icap}Encapsulated: req-body=0\r\n\r\n`
  const connection: Connection = {
    address: '192.0.2.1',
    async *chunks() {
      yield Buffer.from(`${request}${content.length.toString(16)}\r\n${content}\r\n0\r\n\r\n`)
    },
    send: async (bytes) => void writes.push(bytes.toString('latin1')),
    expectWithin() {},
    expectContent() {},
    expectNothing() {},
    setFailureReply() {},
    noteVerdict() {},
    setBusy() {},
    isStopping: () => false,
  }
  await serveIcap(connection, icapDeps)
  return writes
}

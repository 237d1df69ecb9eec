import assert from 'node:assert/strict'
import { createPublicKey, randomBytes, verify } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { Agent, type IncomingMessage, request as startRequest } from 'node:http'
import { request as startTlsRequest } from 'node:https'
import { connect } from 'node:net'
import { text } from 'node:stream/consumers'
import { after, before, suite, test } from 'node:test'
import { fileURLToPath } from 'node:url'
import { headers } from '@assay/contract'
import { adminPath, type ServiceActivity } from '@assay/contract/admin'
import { eicarMember, newZip } from '../support/archives.ts'
import { makeAdmin } from '../support/console.ts'
import { filePart, formType, toForm } from '../support/forms.ts'
import { findChildren, findProcesses, isRunning, isStopped, killAll } from '../support/processes.ts'
import { type Service, startService, withoutImages } from '../support/start-service.ts'
import { waitUntil } from '../support/wait-until.ts'

const adminToken = randomBytes(32).toString('hex')
const maxConnections = 100
const settings = {
  ...withoutImages,
  ASSAY_HTTP_PROCESSES: '2',
  ASSAY_ADMIN_TOKEN: adminToken,
  ASSAY_MAX_CONNECTIONS: String(maxConnections),
}

const listHttpProcesses = ({ pid }: Service) => findChildren(pid, 'http-process')

/** Kills HTTP processes, and waits until as many others are ready: only then connections go to both in turn. */
async function replaceProcesses(service: Service, pids: number[]) {
  const countReady = () => service.log().split('"HTTP process ready"').length
  const before = countReady()
  killAll(pids)
  await waitUntil('other processes', () => countReady() === before + pids.length)
}

type Sent = { status: number; headers: IncomingMessage['headers']; body: string }

/** A connection that stays open: connections go to the processes in turn. */
function openConnection(url: string, key: string) {
  const agent = new Agent({ keepAlive: true, maxSockets: 1 })
  const begin = (method: string, path: string, more: Record<string, string | number> = {}) =>
    startRequest(url + path, { agent, method, headers: { [headers.apiKey]: key, ...more } })

  async function toSent(request: ReturnType<typeof begin>): Promise<Sent> {
    const response = await new Promise<IncomingMessage>((resolve, reject) =>
      request.once('response', resolve).once('error', reject),
    )
    return { status: response.statusCode ?? 0, headers: response.headers, body: await text(response) }
  }

  function beginScan(content: string | Buffer) {
    const body = toForm([filePart(content)])
    const request = begin('POST', '/v1/malware/scan/file', { 'content-type': formType, 'content-length': body.length })
    return { request, body, answer: toSent(request) }
  }

  return {
    ping: () => toSent(begin('GET', '/v1/ping').end()),
    get: (path: string) => toSent(begin('GET', path).end()),
    beginScan,
    scan(content: string | Buffer) {
      const { request, body, answer } = beginScan(content)
      request.end(body)
      return answer
    },
    close: () => agent.destroy(),
  }
}

type Connection = ReturnType<typeof openConnection>

/** Two connections, which belong to different processes because no other one is opened in between. */
async function openPair(url: string, key: string): Promise<[Connection, Connection]> {
  const pair: [Connection, Connection] = [openConnection(url, key), openConnection(url, key)]
  for (const connection of pair) assert.equal((await connection.ping()).status, 200)
  return pair
}

const newText = (bytes: number) => randomBytes(bytes / 2).toString('hex')

suite('two HTTP processes', () => {
  let service: Service
  let admin: ReturnType<typeof makeAdmin>
  before(async () => {
    service = await startService(settings)
    admin = makeAdmin(service.url, adminToken)
  })
  after(() => service.stop())

  async function createAccount(form: Record<string, string | number> = {}) {
    const { account, api_key } = await admin.createAccount({ plan: 'standard', rate: '100000/1m', ...form })
    return { id: account.id, key: api_key }
  }

  const readSpent = async (key: string) => {
    const answer = await fetch(`${service.url}/v1/me`, { headers: { [headers.apiKey]: key } })
    const { credit_limit, credit_remaining } = (await answer.json()) as Record<string, number>
    return Number(credit_limit) - Number(credit_remaining)
  }

  const count = (answers: { status: number }[], status: number) =>
    answers.filter((answer) => answer.status === status).length

  test('admit exactly as many requests as the rate allows', async () => {
    const { key } = await createAccount({ rate: '50/1m' })
    const pair = [openConnection(service.url, key), openConnection(service.url, key)]
    const each = (connection: Connection) => Promise.all(Array.from({ length: 60 }, () => connection.ping()))
    const answers = (await Promise.all(pair.map(each))).flat()
    assert.deepEqual([count(answers, 200), count(answers, 429)], [50, 70])
    pair.forEach((connection) => void connection.close())
  })

  test('charge exactly as many scans as there are credits', async () => {
    const { key } = await createAccount({ credits: 10 })
    const connections = Array.from({ length: 6 }, () => openConnection(service.url, key))
    const each = (connection: Connection) => Promise.all(Array.from({ length: 5 }, () => connection.scan(newText(500))))
    const answers = (await Promise.all(connections.map(each))).flat()
    assert.deepEqual([count(answers, 201), count(answers, 403)], [10, 20])
    connections.forEach((connection) => void connection.close())
  })

  test('share verdicts of content that one of them has received', async () => {
    const { key } = await createAccount()
    const pair = await openPair(service.url, key)
    const contents = [newText(1000), newText(300_000)]
    for (const content of contents) assert.equal((await pair[0].scan(content)).status, 201)
    const [clamd = 0] = findChildren(service.pid, 'clamd --config-file')
    process.kill(clamd, 'SIGSTOP')
    try {
      for (const content of contents) {
        const repeat = await pair[1].scan(content)
        assert.match(repeat.body, /"status":"clean"/)
      }
    } finally {
      process.kill(clamd, 'SIGCONT')
    }
    assert.equal(await readSpent(key), 4)
    pair.forEach((connection) => void connection.close())
  })

  test('refuse a restricted and a revoked key at once, also on the fast path', async () => {
    const { id, key } = await createAccount()
    const pair = await openPair(service.url, key)
    for (const connection of pair) assert.equal((await connection.scan(newText(100))).status, 201)
    const [first] = (await service.operate('keys', 'list', '--account', id)) as { id: string }[]
    const restrict = (...options: string[]) => service.operate('keys', 'set', first?.id ?? '', ...options)
    const spent = await readSpent(key)
    for (const options of [
      ['--allow', 'read,submit'],
      ['--networks', '192.0.2.0/24'],
    ]) {
      await restrict(...options)
      for (const connection of pair) {
        const refused = await connection.scan(newText(100))
        assert.deepEqual([refused.status, JSON.parse(refused.body).type.split('/').at(-1)], [403, 'key-restricted'])
      }
      await restrict('--allow', 'none', '--networks', '127.0.0.0/8,::1')
      for (const connection of pair) assert.equal((await connection.scan(newText(100))).status, 201)
    }
    assert.equal(await readSpent(key), spent + 4)
    await service.operate('keys', 'revoke', first?.id ?? '')
    for (const connection of pair) {
      assert.equal((await connection.scan(newText(100))).status, 401)
      assert.equal((await connection.ping()).status, 401)
    }
    pair.forEach((connection) => void connection.close())
  })

  test('answer with receipts that the same key of the service has signed', async () => {
    const { key } = await createAccount()
    const pair = await openPair(service.url, key)
    const { id } = JSON.parse((await pair[0].scan(newText(100))).body)
    const { keys } = JSON.parse((await pair[1].get('/.well-known/assay-receipts.json')).body)
    assert.deepEqual(keys, [])
    for (const connection of pair) {
      const { metadata } = JSON.parse((await connection.get(`/v1/malware/${id}?receipt=1`)).body)
      const [head = '', body = '', signature = ''] = metadata.receipt.split('.')
      const { keys } = JSON.parse((await connection.get('/.well-known/assay-receipts.json')).body)
      assert.equal(keys.length, 1)
      const publicKey = createPublicKey({ key: keys[0], format: 'jwk' })
      assert(verify(null, Buffer.from(`${head}.${body}`), publicKey, Buffer.from(signature, 'base64url')))
      assert.equal(JSON.parse(Buffer.from(body, 'base64url').toString()).result.id, id)
    }
    const listKeys = async () =>
      JSON.parse((await pair[0].get('/.well-known/assay-receipts.json')).body).keys.map(
        (key: { kid: string }) => key.kid,
      )
    const [former = ''] = await listKeys()
    const { kid } = (await service.operate('receipts', 'rotate-key')) as { kid: string }
    assert.deepEqual(await listKeys(), [kid, former])
    await service.operate('receipts', 'withdraw-key', former)
    assert.deepEqual(await listKeys(), [kid])
    pair.forEach((connection) => void connection.close())
  })

  test('scan content of every size, and what is inside of it', async () => {
    const { key } = await createAccount()
    const [connection] = await openPair(service.url, key)
    for (const bytes of [100_000, 600_000, 1_500_000]) {
      const clean = await connection.scan(randomBytes(bytes))
      assert.match(clean.body, new RegExp(`"status":"clean","content_length":${bytes},`))
      const threat = await connection.scan(newZip([{ name: 'padding', data: randomBytes(bytes) }, eicarMember]))
      assert.match(threat.body, /"status":"threat".*"location":"content.bin!eicar.com"/)
    }
    assert.equal((await connection.scan('')).status, 422)
    connection.close()
  })

  test('are one node in the charts: their scans and their memory are added', async () => {
    const { key } = await createAccount()
    const pair = await openPair(service.url, key)
    for (const connection of pair) assert.equal((await connection.scan(newText(1000))).status, 201)
    const { points } = await admin.ask<ServiceActivity>(admin.token, 'GET', '/operator/activity')
    assert(points.some(({ malware, p50_ms }) => malware.clean > 0 && p50_ms !== null))
    const memory = Math.max(...points.map(({ memory_bytes }) => memory_bytes ?? 0))
    const pids = [service.pid, ...listHttpProcesses(service)]
    const resident = pids.map((pid) =>
      Number(/^VmRSS:\s+(\d+) kB$/m.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))?.[1]),
    )
    // The memory of a process changes all the time; without one of the processes it would be far less.
    assert(memory > (resident.reduce((sum, kilobytes) => sum + kilobytes, 0) - Math.min(...resident) / 2) * 1024)
    pair.forEach((connection) => void connection.close())
  })

  test('sum their metrics, which do not fall when one is killed', async () => {
    const { key } = await createAccount()
    const pair = await openPair(service.url, key)
    const readPings = async () => {
      const metrics = await (await fetch(`http://127.0.0.1:${service.metricsPort}/metrics`)).text()
      const line = /^assay_http_request_duration_seconds_count\{operation="General.Ping",status="200".*\} (\d+)$/m
      return Number(line.exec(metrics)?.[1] ?? 0)
    }
    const first = await readPings()
    for (const connection of pair) for (let n = 0; n < 5; n++) await connection.ping()
    assert.equal(await readPings(), first + 10)
    await replaceProcesses(service, listHttpProcesses(service).slice(0, 1))
    assert.equal(await readPings(), first + 10)
    pair.forEach((connection) => void connection.close())
  })

  test('know no secret of the service', () => {
    for (const pid of listHttpProcesses(service))
      assert.doesNotMatch(readFileSync(`/proc/${pid}/environ`, 'latin1'), /ASSAY_/)
  })

  test('send no interim response to a client of HTTP/1.0, also for a request that they pass on', async () => {
    const { hostname, port } = new URL(service.url)
    const socket = connect(Number(port), hostname)
    const body = JSON.stringify({ name: 'old', plan: 'none such' })
    socket.write(
      `POST ${adminPath}/operator/accounts HTTP/1.0\r\nAuthorization: Bearer ${adminToken}\r\nExpect: 100-continue\r\n` +
        `Content-Type: application/json\r\nContent-Length: ${body.length}\r\n\r\n${body}`,
    )
    assert.match(await text(socket), /^HTTP\/1.1 422 /)
  })

  test('leave no more connections to the main process than are allowed when they hang', async () => {
    const { hostname, port } = new URL(service.url)
    const processes = listHttpProcesses(service)
    for (const pid of processes) process.kill(pid, 'SIGSTOP')
    await waitUntil('the processes to stop', () => processes.every(isStopped))
    const sockets = Array.from({ length: maxConnections + 20 }, () => connect(Number(port), hostname))
    try {
      let closed = 0
      for (const socket of sockets) socket.on('error', () => {}).once('close', () => closed++)
      for (const socket of sockets) socket.resume()
      await waitUntil('surplus connections to be closed', () => closed >= 20)
      assert.equal(closed, 20)
    } finally {
      for (const socket of sockets) socket.destroy()
      for (const pid of processes) process.kill(pid, 'SIGCONT')
    }
    const areServed = async () => {
      const pair = [openConnection(service.url, service.apiKey), openConnection(service.url, service.apiKey)]
      const answers = await Promise.allSettled(pair.map((connection) => connection.ping()))
      pair.forEach((connection) => void connection.close())
      return answers.every(({ status }) => status === 'fulfilled')
    }
    await waitUntil('both processes to take new connections', areServed)
  })

  test('a killed one is replaced, and only its requests are lost, without a charge', async () => {
    const { key } = await createAccount()
    const pair = await openPair(service.url, key)
    const [clamd = 0] = findChildren(service.pid, 'clamd --config-file')
    process.kill(clamd, 'SIGSTOP')
    // More than may be scanned at once: some hold a place among the large scans, others wait for one.
    const lost = Array.from({ length: 8 }, () => openConnection(service.url, key).scan(randomBytes(1_200_000)))
    const results = Promise.allSettled(lost)
    const memory = async () => {
      const metrics = await (await fetch(`http://127.0.0.1:${service.metricsPort}/metrics`)).text()
      return Number(/^assay_content_memory_bytes\{.*\} (\d+)$/m.exec(metrics)?.[1])
    }
    await waitUntil('all content to arrive', async () => (await memory()) >= 9_600_000)
    const before = listHttpProcesses(service)
    const replaced = replaceProcesses(service, before)
    try {
      assert.ok((await results).every(({ status }) => status === 'rejected'))
    } finally {
      process.kill(clamd, 'SIGCONT')
    }
    const answers = await Promise.all(
      Array.from({ length: 4 }, () => openConnection(service.url, key).scan(randomBytes(1_200_000))),
    )
    assert.equal(count(answers, 201), 4)
    assert.equal(await readSpent(key), 4)
    await replaced
    assert.equal(listHttpProcesses(service).filter((pid) => before.includes(pid)).length, 0)
    assert.equal(listHttpProcesses(service).length, 2)
    pair.forEach((connection) => void connection.close())
  })

  test('one of them does not notice when the other is killed', async () => {
    const { key } = await createAccount()
    const pair = await openPair(service.url, key)
    const uploads = pair.map((connection) => connection.beginScan(newText(2000)))
    for (const { request, body } of uploads) request.write(body.subarray(0, 1000))
    const replaced = replaceProcesses(service, listHttpProcesses(service).slice(0, 1))
    const first = await Promise.race(uploads.map(({ answer }) => answer.catch(() => 'lost')))
    assert.equal(first, 'lost')
    for (const { request, body } of uploads) request.end(body.subarray(1000))
    const results = await Promise.allSettled(uploads.map(({ answer }) => answer))
    assert.deepEqual(results.map(({ status }) => status).toSorted(), ['fulfilled', 'rejected'])
    await replaced
    pair.forEach((connection) => void connection.close())
  })

  test('finish running requests during a stop', async () => {
    const { key } = await createAccount()
    const pair = await openPair(service.url, key)
    const uploads = pair.map((connection) => connection.beginScan(newText(2000)))
    for (const { request, body } of uploads) request.write(body.subarray(0, 1000))
    // The upload has begun when the service knows its connection: a ping on the same process comes back after it.
    for (const connection of await openPair(service.url, key)) connection.close()
    const stopped = service.stop()
    await waitUntil('the stop to begin', () => service.log().includes('stopping; running requests may finish'))
    for (const { request, body } of uploads) request.end(body.subarray(1000))
    for (const { answer } of uploads) assert.equal((await answer).status, 201)
    await stopped
    assert.deepEqual(findProcesses(service.dataDir), [])
  })
})

test('HTTP processes serve TLS, and end when the service is killed', async () => {
  const file = (name: string) => fileURLToPath(new URL(`../support/certificates/${name}`, import.meta.url))
  const tls = { ASSAY_TLS_CERT: file('first.crt'), ASSAY_TLS_KEY: file('first.key') }
  // Nothing is scanned: in test mode the service starts without engines.
  const service = await startService({ ...settings, ...tls }, 'kept', { options: ['--test'] })
  const processes = listHttpProcesses(service)
  for (const path of ['/v1/ping', '/livez']) {
    const request = startTlsRequest(service.url + path, {
      rejectUnauthorized: false,
      headers: { [headers.apiKey]: service.apiKey },
    }).end()
    const [response] = await new Promise<[IncomingMessage]>((resolve, reject) =>
      request.once('response', (found) => resolve([found])).once('error', reject),
    )
    assert.equal(response.statusCode, 200)
    assert.equal(response.headers['strict-transport-security'], 'max-age=31536000')
    response.resume()
  }
  await service.stop('SIGKILL')
  await waitUntil('the HTTP processes to end', () => !processes.some(isRunning))
  killAll(findProcesses(service.dataDir))
})

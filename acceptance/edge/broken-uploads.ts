import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { filePart, formType, toForm } from '../support/forms.ts'
import { sendTo } from '../support/http.ts'
import { assertProblem } from '../support/problems.ts'
import { openRaw, type RawAnswer, toStatuses } from '../support/raw-socket.ts'
import type { Service } from '../support/start-service.ts'
import { waitUntil } from '../support/wait-until.ts'

const megabyte = Buffer.alloc(1024 * 1024, 'x')

/** Tests clients that leave or are refused, on a service whose sockets and log no other test uses at that time. */
export function testBrokenUploads(service: Service) {
  const head = (...lines: string[]) =>
    ['POST /v1/malware/scan/file HTTP/1.1', `Host: ${new URL(service.url).host}`, ...lines, '', ''].join('\r\n')

  async function assertAlive() {
    const ping = await fetch(`${service.url}/v1/ping`, { headers: { 'x-api-key': service.apiKey } })
    assert.equal(ping.status, 200)
  }

  async function countSockets(): Promise<number> {
    const metrics = await (await fetch(`http://127.0.0.1:${service.metricsPort}/metrics`)).text()
    const found = /^nodejs_active_resources\{[^}]*type="TCPSocketWrap"[^}]*\} (\d+)$/m.exec(metrics)
    return Number(found?.[1] ?? 0)
  }

  describe('a client that is refused while it sends up to 50 MB receives the response', () => {
    /** The first upload is larger than the buffers of both sockets; the others repeat the race with the response. */
    const sizes = [50, 12, 12, 12, 12]
    const toLength = (megabytes: number) => `Content-Length: ${megabytes * megabyte.length}`

    test('when it reads while it sends, and stops at the response', async () => {
      for (const [run, megabytes] of sizes.entries()) {
        const connection = await openRaw(service.url)
        await connection.send(head('X-API-Key: wrong', `Content-Type: ${formType}`, toLength(megabytes)))
        let answer: RawAnswer | undefined
        const answered = connection.readAnswer().then((found) => {
          answer = found
        })
        for (let sent = 0; sent < megabytes && answer === undefined; sent++) await connection.send(megabyte)
        await answered
        assert.equal(answer?.status, 401, `run ${run}`)
        assert.equal(answer?.headers['www-authenticate'], 'ApiKey')
        connection.leave()
      }
    })

    test('when it sends everything before it reads', async () => {
      for (const [run, megabytes] of sizes.entries()) {
        const connection = await openRaw(service.url)
        await connection.send(head('X-API-Key: wrong', `Content-Type: ${formType}`, toLength(megabytes)))
        for (let sent = 0; sent < megabytes; sent++) await connection.send(megabyte)
        const answer = await connection.readAnswer()
        assert.equal(answer.status, 401, `run ${run}`)
        connection.leave()
      }
    })

    test('when it uses fetch', async () => {
      for (const [run, megabytes] of sizes.entries()) {
        const body = new FormData()
        body.set('file', new Blob(Array(megabytes).fill(megabyte)), 'large.bin')
        const headers = { 'x-api-key': 'wrong' }
        const answer = await fetch(`${service.url}/v1/malware/scan/file`, { method: 'POST', headers, body })
        assert.equal(answer.status, 401, `run ${run}`)
      }
    })
  })

  test('a refused client that never stops sending is disconnected', async () => {
    const connection = await openRaw(service.url)
    await connection.send(head('X-API-Key: wrong', 'Transfer-Encoding: chunked'))
    const drip = setInterval(() => void connection.send('1\r\nx\r\n'), 100)
    const answers = await connection.readToEnd().finally(() => clearInterval(drip))
    assert.deepEqual(toStatuses(answers), [401])
  })

  test('an incomplete form gets 400', async () => {
    const form = toForm([filePart('hello')])
    const answer = await sendTo(service.url, {
      method: 'POST',
      path: '/v1/malware/scan/file',
      headers: { 'x-api-key': service.apiKey, 'content-type': formType },
      body: form.subarray(0, form.length - 6),
    })
    await assertProblem(answer, { status: 400, kind: 'malformed-request' })
  })

  test('400 clients that disconnect during an upload leave no socket open and no error in the log', async () => {
    await assertAlive()
    const before = await countSockets()
    const form = toForm([filePart(Buffer.alloc(70_000, 'x'))])
    const abandon = async (index: number) => {
      const connection = await openRaw(service.url)
      const lines = [`X-API-Key: ${service.apiKey}`, `Content-Type: ${formType}`, 'Content-Length: 10000000']
      await connection.send(head(...lines))
      // At different moments: before the body, in a part's header, in its content.
      await connection.send(form.subarray(0, [0, 30, 200, 66_000][index % 4]))
      if (index % 2 === 0) connection.reset()
      else connection.leave()
    }
    for (let done = 0; done < 400; done += 50) {
      await Promise.all(Array.from({ length: 50 }, (_, index) => abandon(index)))
    }
    await assertAlive()
    await waitUntil('the sockets to be closed', async () => (await countSockets()) <= before + 2)
    assert.doesNotMatch(service.log(), /"level":"(error|fatal)"/)
  })
}

import assert from 'node:assert/strict'
import { hash } from 'node:crypto'
import type { ServerResponse } from 'node:http'
import { before, describe, test } from 'node:test'
import { openOrigin } from '../support/origin.ts'
import { openRaw, type RawConnection } from '../support/raw-socket.ts'
import { getSharedService } from '../support/shared-service.ts'
import { waitUntil } from '../support/wait-until.ts'

const service = getSharedService()
const { host } = new URL(service.url)
let key = ''
before(async () => {
  key = (await service.createAccount()).api_key
})

const head = (requestLine: string, lines: string[]) => [requestLine, `Host: ${host}`, ...lines, '', ''].join('\r\n')
const ping = (apiKey: string) => head('GET /v1/ping HTTP/1.1', [`X-API-Key: ${apiKey}`])
const form = (lines: string[]) => head('POST /v1/malware/scan/file HTTP/1.1', [`X-API-Key: ${key}`, ...lines])

function scanUrl(url: string): string {
  const body = JSON.stringify({ file_url: url })
  const lines = [`X-API-Key: ${key}`, 'Content-Type: application/json', `Content-Length: ${body.length}`]
  return head('POST /v1/malware/scan/url HTTP/1.1', lines) + body
}

async function readStatuses({ readAnswer }: RawConnection, count: number): Promise<number[]> {
  const statuses: number[] = []
  while (statuses.length < count) statuses.push((await readAnswer()).status)
  return statuses
}

describe('pipelined requests of one connection', () => {
  const maxInProgress = 4
  const pipelined = 20

  test('begin a few at a time, and other connections are answered meanwhile', async () => {
    const held: ServerResponse[] = []
    let most = 0
    const origin = await openOrigin((request, response) => {
      if (request.url === '/other') return void response.end('good day')
      held.push(response)
      most = Math.max(most, held.length)
    })
    const greedy = await openRaw(service.url)
    const other = await openRaw(service.url)
    try {
      await greedy.send(scanUrl(`${origin.url}/held`).repeat(pipelined))
      await waitUntil('the first downloads', () => held.length >= maxInProgress)
      await other.send(ping(key) + scanUrl(`${origin.url}/other`))
      assert.deepEqual(await readStatuses(other, 2), [200, 201])
      for (let done = 0; done < pipelined; done++) {
        await waitUntil('the next download', () => held.length > 0)
        held.shift()?.end(`good morning ${done}`)
        // A further request that the service would begin too early begins before this answer.
        await other.send(ping(key))
        assert.deepEqual(await readStatuses(other, 1), [200])
      }
      assert.deepEqual(await readStatuses(greedy, pipelined), Array(pipelined).fill(201))
      assert.equal(most, maxInProgress)
    } finally {
      greedy.leave()
      other.leave()
      await origin.close()
    }
  })

  test('are all answered, hundreds of them', async () => {
    const greedy = await openRaw(service.url)
    try {
      const count = 500
      await greedy.send(ping(key).repeat(count))
      assert.deepEqual(new Set(await readStatuses(greedy, count)), new Set([200]))
    } finally {
      greedy.leave()
    }
  })
})

describe('a form in chunks of one byte', () => {
  for (const boundary of ['b', 'b'.repeat(6000)]) {
    test(`is read, with a boundary of ${boundary.length} bytes`, async () => {
      const connection = await openRaw(service.url)
      try {
        const lines = `\r\n--${boundary.slice(1)}\r\r`.repeat(2)
        const body = `--${boundary}\r\nContent-Disposition: form-data; name="file"; filename="a.txt"\r\n\r\n${lines}`
        const chunks = [...`${body}\r\n--${boundary}--\r\n`].map((byte) => `1\r\n${byte}\r\n`)
        const type = `Content-Type: multipart/form-data; boundary=${boundary}`
        await connection.send(`${form([type, 'Transfer-Encoding: chunked'])}${chunks.join('')}0\r\n\r\n${ping(key)}`)
        const scan = await connection.readAnswer()
        assert.equal(scan.status, 201, scan.text)
        assert.equal(JSON.parse(scan.text).metadata.hash_sha256, hash('sha256', lines))
        assert.deepEqual(await readStatuses(connection, 1), [200])
      } finally {
        connection.leave()
      }
    })
  }
})

describe('a network that sends many wrong keys', () => {
  const address = '127.0.0.77'

  test('gets 429, and a valid key from the same address is served', async () => {
    const flood = await Promise.all(Array.from({ length: 20 }, () => openRaw(service.url, address)))
    const client = await openRaw(service.url, address)
    try {
      let limited: Awaited<ReturnType<RawConnection['readAnswer']>> | undefined
      const statuses = new Set<number>()
      const sendUntilLimited = async (connection: RawConnection) => {
        while (limited === undefined) {
          await connection.send(ping('wrong').repeat(20))
          for (let i = 0; i < 20; i++) {
            const answer = await connection.readAnswer()
            statuses.add(answer.status)
            if (answer.status === 429) limited ??= answer
          }
        }
      }
      const flooding = flood.map(sendUntilLimited)
      await waitUntil('a refusal', () => limited !== undefined)
      await client.send(ping(key))
      assert.equal((await client.readAnswer()).status, 200)
      await Promise.all(flooding)
      assert.deepEqual(statuses, new Set([401, 429]))
      assert.match(limited?.headers['retry-after'] ?? '', /^\d+$/)
      assert.match(limited?.text ?? '', /without a valid key/)
    } finally {
      for (const connection of [...flood, client]) connection.leave()
    }
  })
})

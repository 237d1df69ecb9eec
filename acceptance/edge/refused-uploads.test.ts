import assert from 'node:assert/strict'
import { execFile, spawnSync } from 'node:child_process'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, before, describe, test } from 'node:test'
import { promisify } from 'node:util'
import { lacksPrograms } from '../support/lacks-programs.ts'
import { openProxy } from '../support/proxies.ts'
import { openRaw } from '../support/raw-socket.ts'
import { getSharedService } from '../support/shared-service.ts'

const service = getSharedService()
const run = promisify(execFile)
const hasRequests = spawnSync('/usr/bin/python3', ['-c', 'import requests']).status === 0
/** The first upload is larger than the buffers of both sockets; the others repeat the race with the response. */
const sizes = [50, 12, 12]
const path = '/v1/malware/scan/file'
const megabyte = Buffer.alloc(1024 * 1024)

/** Sends the whole body before it reads, and says `Connection: close`. */
const urllib = `
import sys, urllib.request, urllib.error
body = b'x' * (int(sys.argv[2]) * 1024 * 1024)
request = urllib.request.Request(sys.argv[1], data=body, headers={'X-API-Key': 'wrong'}, method='POST')
try:
    urllib.request.urlopen(request, timeout=60)
except urllib.error.HTTPError as error:
    print(error.code)
`
const requests = `
import sys, requests
body = b'x' * (int(sys.argv[2]) * 1024 * 1024)
print(requests.post(sys.argv[1], data=body, headers={'X-API-Key': 'wrong'}, timeout=60).status_code)
`

describe('a refused upload of up to 50 MB gets its response', () => {
  let dir = ''
  before(() => {
    dir = mkdtempSync(join(tmpdir(), 'assay-refused-'))
    for (const megabytes of sizes) writeFileSync(toBody(megabytes), Buffer.alloc(megabytes * 1024 * 1024, 'x'))
  })
  after(() => rmSync(dir, { recursive: true }))

  const toBody = (megabytes: number) => join(dir, `body-${megabytes}`)
  const sendWithCurl = async (megabytes: number, url: string, ...options: string[]) => {
    const words = ['-s', '-o', '/dev/null', '-w', '%{http_code}', '-H', 'X-API-Key: wrong', '-H', 'Expect:', ...options]
    return (await run('curl', [...words, '-F', `file=@${toBody(megabytes)}`, url + path])).stdout
  }
  const sendWithPython = async (megabytes: number, script: string) =>
    (await run('/usr/bin/python3', ['-c', script, service.url + path, String(megabytes)])).stdout.trim()

  const raw =
    (version: string, ...lines: string[]) =>
    async (megabytes: number) => {
      const head = [`POST ${path} HTTP/${version}`, `Host: ${new URL(service.url).host}`, 'X-API-Key: wrong', ...lines]
      const connection = await openRaw(service.url)
      await connection.send([...head, `Content-Length: ${megabytes * 1024 * 1024}`, '', ''].join('\r\n'))
      for (let sent = 0; sent < megabytes; sent++) await connection.send(megabyte)
      const { status } = await connection.readAnswer()
      assert.deepEqual(await connection.readToEnd(), [])
      return String(status)
    }

  const clients: Record<string, { send: (megabytes: number) => Promise<string>; skip?: string | false }> = {
    'over a connection that is to be closed': { send: raw('1.1', 'Connection: close') },
    'in HTTP/1.0': { send: raw('1.0') },
    'sent by curl': { send: (megabytes) => sendWithCurl(megabytes, service.url), skip: lacksPrograms('curl') },
    'sent by curl in HTTP/1.0': {
      send: (megabytes) => sendWithCurl(megabytes, service.url, '--http1.0'),
      skip: lacksPrograms('curl'),
    },
    'sent by urllib': { send: (megabytes) => sendWithPython(megabytes, urllib), skip: lacksPrograms('python3') },
    'sent by requests': {
      send: (megabytes) => sendWithPython(megabytes, requests),
      skip: lacksPrograms('python3') || (!hasRequests && 'python3-requests is not installed'),
    },
  }
  for (const [what, { send, skip }] of Object.entries(clients)) {
    test(what, { skip }, async () => {
      for (const megabytes of sizes) assert.equal(await send(megabytes), '401', `${megabytes} MB`)
    })
  }

  for (const name of ['nginx', 'haproxy'] as const) {
    test(`through ${name}`, { skip: lacksPrograms('curl', name) }, async (t) => {
      const proxy = await openProxy(name, service.url)
      t.after(proxy.close)
      for (const megabytes of sizes) assert.equal(await sendWithCurl(megabytes, proxy.url), '401', `${megabytes} MB`)
    })
  }
})

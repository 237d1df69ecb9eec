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
const megabytes = 50
const tries = 3
const path = '/v1/malware/scan/file'

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

describe('a refused upload of 50 MB gets its response', () => {
  let dir = ''
  before(() => {
    dir = mkdtempSync(join(tmpdir(), 'assay-refused-'))
    writeFileSync(join(dir, 'body'), Buffer.alloc(megabytes * 1024 * 1024, 'x'))
  })
  after(() => rmSync(dir, { recursive: true }))

  const sendWithCurl = async (url: string, ...options: string[]) => {
    const words = ['-s', '-o', '/dev/null', '-w', '%{http_code}', '-H', 'X-API-Key: wrong', '-H', 'Expect:', ...options]
    return (await run('curl', [...words, '-F', `file=@${join(dir, 'body')}`, url + path])).stdout
  }
  const sendWithPython = async (script: string) =>
    (await run('/usr/bin/python3', ['-c', script, service.url + path, String(megabytes)])).stdout.trim()

  const raw =
    (version: string, ...lines: string[]) =>
    async () => {
      const head = [`POST ${path} HTTP/${version}`, `Host: ${new URL(service.url).host}`, 'X-API-Key: wrong', ...lines]
      const connection = await openRaw(service.url)
      await connection.send([...head, `Content-Length: ${megabytes * 1024 * 1024}`, '', ''].join('\r\n'))
      for (let sent = 0; sent < megabytes; sent++) await connection.send(Buffer.alloc(1024 * 1024))
      const { status } = await connection.readAnswer()
      assert.deepEqual(await connection.readToEnd(), [])
      return String(status)
    }

  const clients: Record<string, { send: () => Promise<string>; skip?: string | false }> = {
    'over a connection that is to be closed': { send: raw('1.1', 'Connection: close') },
    'in HTTP/1.0': { send: raw('1.0') },
    'sent by curl': { send: () => sendWithCurl(service.url), skip: lacksPrograms('curl') },
    'sent by curl in HTTP/1.0': { send: () => sendWithCurl(service.url, '--http1.0'), skip: lacksPrograms('curl') },
    'sent by urllib': { send: () => sendWithPython(urllib), skip: lacksPrograms('python3') },
    'sent by requests': {
      send: () => sendWithPython(requests),
      skip: lacksPrograms('python3') || (!hasRequests && 'python3-requests is not installed'),
    },
  }
  for (const [what, { send, skip }] of Object.entries(clients)) {
    test(what, { skip }, async () => {
      for (let time = 0; time < tries; time++) assert.equal(await send(), '401', `try ${time}`)
    })
  }

  for (const name of ['nginx', 'haproxy'] as const) {
    test(`through ${name}`, { skip: lacksPrograms('curl', name) }, async (t) => {
      const proxy = await openProxy(name, service.url)
      t.after(proxy.close)
      for (let time = 0; time < tries; time++) assert.equal(await sendWithCurl(proxy.url), '401', `try ${time}`)
    })
  }
})

import { spawn } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import { mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { dirname, join, normalize, resolve } from 'node:path'
import { createInterface } from 'node:readline'
import { fileURLToPath, pathToFileURL } from 'node:url'

/**
 * Prints figures about the server's source: files, lines, importers, and the files whose functions run during a
 * synchronous scan, a submit with its webhook, and an admin call. V8's precise coverage counts the latter in a running
 * service, so they include everything that really runs and nothing that is merely imported.
 *
 * `npm run figures` measures this checkout, `npm run figures -- DIRECTORY` another one; `--files` lists the files.
 */
const args = process.argv.slice(2)
const root = resolve(args.find((arg) => !arg.startsWith('--')) ?? fileURLToPath(new URL('..', import.meta.url)))
const source = join(root, 'packages/server/src')

type Coverage = { url: string; functions: { ranges: { startOffset: number; endOffset: number; count: number }[] }[] }

const rows: [string, string][] = [...countSource(), ...(await countRunningFiles())]
const width = Math.max(...rows.map(([name]) => name.length))
for (const [name, value] of rows) process.stdout.write(`${name.padEnd(width)}  ${value}\n`)
process.exit()

function countSource(): [string, string][] {
  const files = readdirSync(source, { recursive: true, encoding: 'utf8' }).filter((name) => name.endsWith('.ts'))
  const importers = new Map(files.map((file) => [file, 0]))
  const lengths = files.map((file) => {
    const text = readFileSync(join(source, file), 'utf8')
    const targets = new Set([...text.matchAll(/(?:from|import)\s*\(?'(\.[^']+)'/g)].map(([, target = '']) => target))
    for (const target of targets) {
      const path = normalize(join(dirname(file), target))
      importers.set(path, (importers.get(path) ?? 0) + 1)
    }
    return text.split('\n').length - 1
  })
  const sorted = lengths.toSorted((a, b) => a - b)
  const short = lengths.filter((lines) => lines < 50).length
  return [
    ['server files', String(files.length)],
    ['lines', String(lengths.reduce((sum, lines) => sum + lines, 0))],
    ['median lines of a file', String(sorted[Math.floor(sorted.length / 2)])],
    ['files under 50 lines', `${Math.round((100 * short) / files.length)} %`],
    ['files with one importer', String([...importers.values()].filter((count) => count === 1).length)],
  ]
}

async function countRunningFiles(): Promise<[string, string][]> {
  const dataDir = mkdtempSync(join(tmpdir(), 'assay-figures-'))
  const apiKey = `assay_${randomBytes(20).toString('hex')}`
  const adminToken = randomBytes(24).toString('hex')
  const service = spawn(process.execPath, ['--inspect=127.0.0.1:0', join(source, 'main.ts'), 'serve', '--json'], {
    cwd: root,
    stdio: ['ignore', 'pipe', 'pipe'],
    env: {
      ...process.env,
      ASSAY_PORT: '0',
      ASSAY_DATA_DIR: dataDir,
      ASSAY_SIGNATURE_HOURS: '0',
      ASSAY_SIGNATURE_MAX_AGE: 'off',
      ASSAY_BOOTSTRAP_KEY: apiKey,
      ASSAY_ADMIN_TOKEN: adminToken,
      ASSAY_OUTBOUND_ALLOW: '127.0.0.0/8',
    },
  })
  const ended = new Promise((done) => service.once('exit', done))
  try {
    const [inspectorUrl, url] = await Promise.all([
      findLine(service.stderr, (line) => /(ws:\/\/\S+)/.exec(line)?.[1]),
      findLine(service.stdout, (line) =>
        line.startsWith('{') ? (JSON.parse(line) as { url: string }).url : undefined,
      ),
    ])
    const inspector = await openInspector(inspectorUrl)
    const receiver = await openReceiver()
    const headers = { 'X-API-Key': apiKey }
    const calls: [string, () => Promise<void>][] = [
      ['synchronous scan of 1 KB', () => scanFile(url, headers)],
      ['submit of a URL, to its webhook', () => submitUrl(url, headers, receiver)],
      ['admin call', () => callAdmin(url, adminToken)],
    ]
    const counted: [string, string][] = []
    for (const [name, call] of calls) {
      const files = await traceCall(inspector, call)
      counted.push([`files that run during a ${name}`.replace('a admin', 'an admin'), String(files.length)])
      if (args.includes('--files')) for (const file of files) counted.push(['', file])
    }
    // A process that gets SIGTERM does not end before its debugger disconnects.
    inspector.close()
    return counted
  } finally {
    service.kill()
    await ended
    rmSync(dataDir, { recursive: true, force: true })
  }
}

/** Repeats the call and keeps the files that ran every time, so that timers of the service do not count. */
async function traceCall(inspector: Inspector, call: () => Promise<void>): Promise<string[]> {
  for (let round = 0; round < 3; round++) await call()
  let files: string[] | undefined
  for (let round = 0; round < 8; round++) {
    await inspector.send('Profiler.takePreciseCoverage')
    await call()
    const { result } = (await inspector.send('Profiler.takePreciseCoverage')) as { result: Coverage[] }
    const serverScripts = result.filter((script) => script.url.startsWith(`${pathToFileURL(source)}/`))
    const ran = serverScripts.filter(({ functions }) => functions.some(({ ranges }) => (ranges[0]?.count ?? 0) > 0))
    const names = new Set(ran.map((script) => script.url.slice(pathToFileURL(source).href.length + 1)))
    files = files === undefined ? [...names] : files.filter((file) => names.has(file))
  }
  return (files ?? []).sort()
}

async function scanFile(url: string, headers: Record<string, string>) {
  const form = new FormData()
  form.append('file', new Blob([randomBytes(1024)]), 'sample.bin')
  await expectStatus(201, await fetch(`${url}/v1/malware/scan/file`, { method: 'POST', headers, body: form }))
}

async function submitUrl(url: string, headers: Record<string, string>, receiver: Receiver) {
  const delivered = receiver.waitForDelivery()
  const body = JSON.stringify({ file_url: `${receiver.url}/content`, callback_url: `${receiver.url}/webhook` })
  const json = { ...headers, 'Content-Type': 'application/json' }
  await expectStatus(202, await fetch(`${url}/v1/malware/submit/url`, { method: 'POST', headers: json, body }))
  await delivered
}

async function callAdmin(url: string, token: string) {
  const headers = { Authorization: `Bearer ${token}` }
  await expectStatus(200, await fetch(`${url}/admin/v1/operator/accounts`, { headers }))
}

async function expectStatus(expected: number, response: Response) {
  const text = await response.text()
  if (response.status !== expected) throw new Error(`${response.url} answered ${response.status}: ${text}`)
}

type Receiver = { url: string; waitForDelivery(): Promise<void> }

/** Serves the content of URL scans, different each time, and receives their webhooks. */
async function openReceiver(): Promise<Receiver> {
  let onDelivery = () => {}
  const server = createServer((request, response) => {
    if (request.method === 'POST') onDelivery()
    response.end(request.method === 'POST' ? '' : randomBytes(1024))
  })
  await new Promise<void>((done) => server.listen(0, '127.0.0.1', done))
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    waitForDelivery: () =>
      new Promise((done) => {
        onDelivery = done
      }),
  }
}

type Inspector = { send(method: string, params?: object): Promise<unknown>; close(): void }

async function openInspector(url: string): Promise<Inspector> {
  const socket = new WebSocket(url)
  await new Promise((done) => socket.addEventListener('open', done, { once: true }))
  const waiting = new Map<number, (result: unknown) => void>()
  socket.addEventListener('message', ({ data }) => {
    const { id, result } = JSON.parse(String(data)) as { id: number; result: unknown }
    waiting.get(id)?.(result)
    waiting.delete(id)
  })
  let last = 0
  const send = (method: string, params: object = {}) =>
    new Promise((done) => {
      const id = ++last
      waiting.set(id, done)
      socket.send(JSON.stringify({ id, method, params }))
    })
  await send('Profiler.enable')
  await send('Profiler.startPreciseCoverage', { callCount: true, detailed: false })
  return { send, close: () => socket.close() }
}

/** Keeps reading after the line is found: a service whose output is not read would block. */
function findLine<T>(stream: NodeJS.ReadableStream, find: (line: string) => T | undefined): Promise<T> {
  return new Promise((done, reject) => {
    createInterface({ input: stream })
      .on('line', (line) => {
        const found = find(line)
        if (found !== undefined) done(found)
      })
      .once('close', () => reject(new Error('The service ended before it was ready.')))
  })
}

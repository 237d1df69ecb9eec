import { randomBytes } from 'node:crypto'
import { setTimeout as sleep } from 'node:timers/promises'
import { openOrigin } from '../../acceptance/support/origin.ts'
import { newContent } from './malware-content.ts'

export type LatencyJob = { url: string; headers: string[]; bytes: number; times: number }
/** Durations in milliseconds. */
export type Times = {
  /** From the request to the response of a synchronous scan. */
  scan: number
  /** From the request to the webhook. */
  webhook: number
  /** From the creation of the job to its verdict, by the clock of the service. */
  verdict: number
  /** From the request to the download of its URL, when the job runs. */
  download: number
}
export type LatencyResult = { [Name in keyof Times]: { p50Ms: number; p95Ms: number } }

type Hook = { id: string; status: string; created_at: string; completed_at: string }

const seed = randomBytes(4).toString('hex')
let contentCount = 0
/** Waiting callers by path. */
const waiting = new Map<string, (text: string) => void>()
/** Serves content and receives webhooks. */
const origin = openOrigin(async (request, response) => {
  const received = waiting.get(request.url ?? '')
  if (request.method === 'GET') {
    received?.('')
    response.end(newFile(1024))
    return
  }
  const parts: Buffer[] = []
  for await (const part of request) parts.push(part)
  received?.(Buffer.concat(parts).toString())
  response.writeHead(204).end()
})

/** Child process of the benchmark: reads jobs and writes results. */
process.on('message', (job: LatencyJob) => {
  measure(job).then(
    (result: LatencyResult) => process.send?.(result),
    (error: Error) => process.send?.({ error: error.stack ?? error.message }),
  )
})
process.on('disconnect', () => process.exit())

/** Measures one request at a time, each after an idle period of the service. */
async function measure({ times, ...job }: LatencyJob): Promise<LatencyResult> {
  const all: Times[] = []
  for (let i = 0; i < times; i++) {
    all.push({ ...(await timeScan(job)), ...(await timeWebhook(job)), ...(await timeDownload(job)) })
  }
  const spread = (name: keyof Times) => {
    const sorted = all.map((one) => one[name]).toSorted((a, b) => a - b)
    const at = (share: number) => sorted[Math.ceil(sorted.length * share) - 1] ?? 0
    return { p50Ms: at(0.5), p95Ms: at(0.95) }
  }
  return { scan: spread('scan'), webhook: spread('webhook'), verdict: spread('verdict'), download: spread('download') }
}

type Target = Omit<LatencyJob, 'times'>

async function timeScan(target: Target): Promise<Pick<Times, 'scan'>> {
  await rest()
  const start = performance.now()
  await post(target, '/v1/malware/scan/file', 201, toForm(target, {}))
  return { scan: performance.now() - start }
}

async function timeWebhook(target: Target): Promise<Pick<Times, 'webhook' | 'verdict'>> {
  await rest()
  const hook = await expect('hook')
  const form = toForm(target, { callback_url: hook.url })
  const start = performance.now()
  const posted = post(target, '/v1/malware/submit/file', 202, form)
  const { at, text } = await hook.received
  const { id } = await posted
  const webhook = JSON.parse(text) as Hook
  if (webhook.id !== id || webhook.status !== 'clean') throw new Error(`The webhook of ${id} says ${text}`)
  return { webhook: at - start, verdict: Date.parse(webhook.completed_at) - Date.parse(webhook.created_at) }
}

async function timeDownload(target: Target): Promise<Pick<Times, 'download'>> {
  await rest()
  const [content, hook] = [await expect('content'), await expect('hook')]
  const body = JSON.stringify({ file_url: content.url, callback_url: hook.url })
  const start = performance.now()
  await post(target, '/v1/malware/submit/url', 202, body)
  const { at } = await content.received
  await hook.received
  return { download: at - start }
}

/** A pause of random length, so that requests do not fall in step with the polls of the service. */
const rest = () => sleep(50 + 200 * Math.random())

/** Returns an address and a promise of the time and the content of the next request to it. */
async function expect(what: string) {
  const path = `/${what}/${contentCount++}`
  const { promise: received, resolve, reject } = Promise.withResolvers<{ at: number; text: string }>()
  const timeout = setTimeout(() => reject(new Error(`No request to ${path} arrived`)), 30_000)
  waiting.set(path, (text) => {
    clearTimeout(timeout)
    waiting.delete(path)
    resolve({ at: performance.now(), text })
  })
  return { url: (await origin).url + path, received }
}

function newFile(bytes: number): Buffer {
  const content = newContent(bytes, contentCount)
  content.stamp(`${seed}${(contentCount++).toString(16).padStart(8, '0')}`)
  return Buffer.concat(content.pieces)
}

function toForm({ bytes }: Target, fields: Record<string, string>): FormData {
  const form = new FormData()
  for (const [name, value] of Object.entries(fields)) form.set(name, value)
  form.set('file', new Blob([new Uint8Array(newFile(bytes))]), 'latency.txt')
  return form
}

/** Sends with a full HTTP client, which adds about 1 ms to each of these sequential requests. */
async function post({ url, headers }: Target, path: string, status: number, body: FormData | string) {
  const [header = ''] = headers
  const answer = await fetch(new URL(path, url), {
    method: 'POST',
    headers: [
      header.split(': ') as [string, string],
      ...(typeof body === 'string' ? ([['Content-Type', 'application/json']] satisfies [string, string][]) : []),
    ],
    body,
  })
  const text = await answer.text()
  if (answer.status !== status) throw new Error(`${path} answers ${answer.status} ${text}`)
  return JSON.parse(text) as { id: string }
}

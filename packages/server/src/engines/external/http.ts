import { randomBytes, randomUUID } from 'node:crypto'
import type { IncomingMessage } from 'node:http'
import { Agent as SecureAgent, request as startSecureRequest } from 'node:https'
import { Readable } from 'node:stream'
import { pipeline } from 'node:stream/promises'
import type { Content } from '../../domain/content/content.ts'
import { type Doubt, EngineDown } from '../../domain/ports/engines.ts'
import { Agent, request as startRequest } from '../../runtime/node-http.ts'
import type { OptionReader } from '../../runtime/toml-options.ts'
import {
  type Answer,
  ContentRefused,
  type ExternalAdapter,
  type ExternalKind,
  readTlsOptions,
  type TlsOptions,
} from './adapter.ts'

const urlMust = 'must be a URL such as https://scan.example.com, without a user or a fragment'

/** Another Assay, or a service that speaks the JSON form of docs/more-engines.md. */
export const httpKind: ExternalKind = {
  read(options) {
    const format = formats[options.oneOf('format', ['assay', 'json'], 'assay')]
    const url = readUrl(options, format.path)
    const tls = url.protocol === 'https:' ? readTlsOptions(options) : undefined
    const apiKey = options.secret('api_key', /^[\x21-\x7e]{8,255}$/, 'must be 8 to 255 visible ASCII characters')
    if (format.needsKey && !options.has('api_key') && !options.has('api_key_file')) {
      options.note('api_key', 'is missing: add api_key_file = "the path of a file with a key of the other Assay"')
    }
    return ({ concurrency }) => openHttpAdapter({ url, tls, concurrency, apiKey, format })
  },
}

function readUrl(options: OptionReader, path: string): URL {
  const text = options.requireText('url', '"https://scan.example.com"')
  const url = URL.parse(text)
  const isPlain = url !== null && /^https?:$/.test(url.protocol) && url.username + url.password + url.hash === ''
  if (text !== '' && !isPlain) options.note('url', urlMust)
  return isPlain ? new URL(`${url.href.replace(/\/$/, '')}${path}`) : new URL('http://localhost')
}

/** `newBody` makes the body, again for every attempt. */
type Body = { headers: Record<string, string | number>; newBody(): AsyncIterable<Buffer> }

type Format = {
  path: string
  needsKey: boolean
  toBody(content: Content, fileName: string): Body
  /** Throws `EngineDown` unless the answer is complete, and about this very content. */
  toAnswer(answer: Record<string, unknown>, content: Content): Answer
}

type Deps = Parameters<typeof makeHttpPost>[0] & { apiKey: string | undefined; format: Format }

function openHttpAdapter({ apiKey, format, ...deps }: Deps): ExternalAdapter {
  const http = makeHttpPost(deps)
  const common = { accept: 'application/json', ...(apiKey === undefined ? {} : { 'x-api-key': apiKey }) }

  return {
    async scan(content, { signal, fileName, scanId = randomUUID() }) {
      const { headers, newBody } = format.toBody(content, fileName)
      // Another Assay charges the attempts of a scan once by this header. Other services may ignore it.
      const sent = { ...common, ...headers, 'idempotency-key': scanId }
      const { status, text } = await http.send({ headers: sent, newBody, signal })
      checkStatus(status)
      return format.toAnswer(parseObject(text), content)
    },
    async close() {
      http.close()
    },
  }
}

function checkStatus(status: number) {
  if (status === 200 || status === 201) return
  if (status === 413 || status === 422) throw new ContentRefused(`it does not take this content (status ${status})`)
  const isRedirect = status >= 300 && status < 400
  throw new EngineDown(`it answered with status ${status}${isRedirect ? '; redirects are not followed' : ''}`)
}

function parseObject(text: string): Record<string, unknown> {
  try {
    const value: unknown = JSON.parse(text)
    if (typeof value === 'object' && value !== null && !Array.isArray(value)) return value as Record<string, unknown>
  } catch {
    // Falls through to the sentence below, like JSON that is no object.
  }
  throw new EngineDown('its answer is not a JSON object')
}

const isTexts = (value: unknown): value is string[] =>
  Array.isArray(value) && value.every((item) => typeof item === 'string')

const json: Format = {
  path: '',
  needsKey: false,
  toBody: (content, fileName) => ({
    headers: {
      'content-type': 'application/octet-stream',
      'content-length': content.bytes,
      'x-file-name': encodeURIComponent(fileName),
    },
    newBody: () => content.read(),
  }),
  toAnswer({ findings, version, sha256 }, content) {
    if (!isTexts(findings)) throw new EngineDown('its answer has no list of findings')
    // The hash proves that the service has read every byte: a cut upload is not clean.
    if (sha256 !== content.sha256) throw new EngineDown('its answer has another SHA-256 than the content')
    if (version !== undefined && typeof version !== 'string') throw new EngineDown('its version is not a text')
    return { findings, version }
  },
}

const assay: Format = {
  path: '/v1/malware/scan/file',
  needsKey: true,
  toBody: toForm,
  toAnswer({ status, signals, metadata }, content) {
    const { hash_sha256: sha256, engine_versions: engines, degraded } = (metadata ?? {}) as Record<string, unknown>
    if (sha256 !== content.sha256) throw new EngineDown('its answer has another SHA-256 than the content')
    if (!isTexts(signals)) throw new EngineDown('its answer has no list of signals')
    const name = degraded === undefined ? 'Assay' : 'Assay (degraded)'
    const version = typeof engines === 'string' ? `${name}: ${engines}` : name
    if (status === 'clean' && signals.length === 0) {
      return { findings: [], version, ...(degraded === undefined ? {} : { degraded: String(degraded) }) }
    }
    if (status === 'threat' && signals.length > 0) {
      return { findings: signals.map((signal) => signal.replace(/^Virus:/, '')), version }
    }
    if (status === 'error' && signals.length > 0) return { findings: [], doubts: toDoubts(signals), version }
    throw new EngineDown('its answer has a status that does not go with its signals')
  },
}

const formats = { assay, json }

const knownDoubts: readonly Doubt[] = ['EncryptedContent', 'UnsupportedContainer', 'ScanLimitExceeded']

/** Other errors than those about the content are failures of the other Assay. */
function toDoubts(signals: string[]): Doubt[] {
  const doubts = signals.map((signal) => knownDoubts.find((doubt) => signal === `Error:${doubt}`))
  if (doubts.includes(undefined)) throw new EngineDown(`it answered ${signals.join(', ')}`)
  return doubts.filter((doubt) => doubt !== undefined)
}

function toForm(content: Content, fileName: string): Body {
  const boundary = `assay-${randomBytes(18).toString('hex')}`
  const name = fileName.replaceAll(/["\\]/g, '_')
  const head = Buffer.from(
    `--${boundary}\r\nContent-Disposition: form-data; name="file"; filename="${name}"\r\n` +
      'Content-Type: application/octet-stream\r\n\r\n',
  )
  const tail = Buffer.from(`\r\n--${boundary}--\r\n`)
  return {
    headers: {
      'content-type': `multipart/form-data; boundary=${boundary}`,
      'content-length': head.length + content.bytes + tail.length,
    },
    async *newBody() {
      yield head
      yield* content.read()
      yield tail
    },
  }
}

/** Answers of engines are a few hundred bytes. */
const maxAnswerBytes = 64 * 1024
const maxHeaderSize = 16 * 1024
const idleMs = 15_000

type Post = Body & { signal: AbortSignal }

/** Sends requests to one address of the operator's, on connections that are kept. Redirects are not followed. */
function makeHttpPost(deps: { url: URL; tls: TlsOptions | undefined; concurrency: number }) {
  const { url, tls } = deps
  const agentOptions = { keepAlive: true, maxSockets: deps.concurrency, timeout: idleMs }
  const agent = tls === undefined ? new Agent(agentOptions) : new SecureAgent({ ...agentOptions, ...tls })

  function start({ headers, signal }: Post) {
    const options = { method: 'POST', agent, headers, signal, maxHeaderSize }
    return tls === undefined ? startRequest(url, options) : startSecureRequest(url, options)
  }

  async function sendOnce(post: Post, onReset: () => void): Promise<{ status: number; text: string }> {
    const request = start(post)
    const { promise, resolve, reject } = Promise.withResolvers<IncomingMessage>()
    request.once('response', resolve)
    request.once('upgrade', (_, socket) => {
      socket.destroy()
      reject(new EngineDown('it answered with another protocol'))
    })
    request.on('error', (error: NodeJS.ErrnoException) => {
      if (request.reusedSocket && error.code === 'ECONNRESET') onReset()
      reject(new EngineDown(`it cannot be reached: ${error.message || error.code}`, { cause: error }))
    })
    // A server may answer before it has read everything; the answer then says whether that was enough.
    const sending = pipeline(Readable.from(post.newBody(), { objectMode: false }), request).catch(reject)
    try {
      const response = await promise
      const text = await readText(response)
      return { status: response.statusCode ?? 0, text }
    } finally {
      if (!request.writableFinished) request.destroy()
      await sending
    }
  }

  return {
    /** Sends the body once more when a kept connection was closed just then. */
    async send(post: Post): Promise<{ status: number; text: string }> {
      let wasReset = false
      const note = () => {
        wasReset = true
      }
      try {
        return await sendOnce(post, note)
      } catch (error) {
        if (!wasReset) throw error
        return await sendOnce(post, () => {})
      }
    },
    close: () => agent.destroy(),
  }
}

async function readText(response: IncomingMessage): Promise<string> {
  const parts: Buffer[] = []
  let bytes = 0
  try {
    for await (const part of response) {
      parts.push(part)
      bytes += part.length
      if (bytes > maxAnswerBytes) throw new EngineDown(`its answer is longer than ${maxAnswerBytes} bytes`)
    }
  } catch (error) {
    response.destroy()
    if (error instanceof EngineDown) throw error
    throw new EngineDown(`its answer was cut: ${(error as Error).message}`, { cause: error })
  }
  if (!response.complete) throw new EngineDown('its answer was cut')
  return Buffer.concat(parts).toString('utf8')
}

import { parseJson, toMeta, unexpected } from './answer.ts'
import { call } from './call.ts'
import type { Content, FileInput } from './content.ts'
import { openDeadline } from './deadline.ts'
import { paths, type Root, roots } from './operations.ts'
import { readOptions } from './options.ts'
import {
  type Account,
  isAccount,
  isReceipt,
  isScanResult,
  type ScanReceipt,
  type ScanResult,
  type WithMeta,
  withMeta,
} from './results.ts'
import type { Outgoing, Transport } from './transport/transport.ts'
import { makeWaitFor, type WaitOptions } from './wait-for.ts'

export type ClientOptions = {
  apiKey: string
  /** Where Assay is: `https://scan.example.com`. With `{region}` in it, `region` is put there. */
  baseUrl: string
  /** `eu`, `uk`, `us`, `ap`, or whatever the operator calls them. */
  region?: string
  /** For a whole call, its retries included. Default: 2 minutes, and 10 minutes for a file. */
  timeoutMs?: number
  /** After a 429, 502, 503 or 504, or a connection that failed. Default: 3. */
  retries?: number
  /** Sends everything, instead of what the platform has. */
  fetch?: typeof fetch
}

export type CallOptions = {
  signal?: AbortSignal
  timeoutMs?: number
}

export type SendOptions = CallOptions & {
  /** A label of the content. Default: the name that the input has. */
  fileName?: string
  /**
   * The same key, operation and content are scanned and charged once. Default: a random one for every call. With null
   * there is none: the service has less to do, and the call is not sent again after a connection that broke.
   */
  idempotencyKey?: string | null
}

export type SubmitOptions = SendOptions & {
  /** Gets the result by POST; see verifyWebhook. */
  callbackUrl?: string
}

/** Bytes of the content that the network has taken; `total` is undefined for streams. Begins anew when it is sent again. */
export type Progress = { sent: number; total: number | undefined }

export type ProgressOptions = { onProgress?(progress: Progress): void }

export type Scans = {
  /** Waits for the verdict. */
  scanFile(input: FileInput, options?: SendOptions & ProgressOptions): Promise<WithMeta<ScanResult>>
  /** Has the service fetch the content, and waits for the verdict. */
  scanUrl(url: string | URL, options?: SendOptions): Promise<WithMeta<ScanResult>>
  /** Hands it over to be scanned in the background. */
  submitFile(input: FileInput, options?: SubmitOptions & ProgressOptions): Promise<WithMeta<ScanReceipt>>
  submitUrl(url: string | URL, options?: SubmitOptions): Promise<WithMeta<ScanReceipt>>
  /** As it stands. */
  getResult(id: string, options?: CallOptions): Promise<WithMeta<ScanResult>>
  /** Until it is settled. Throws TimedOut after `timeoutMs`, by default 5 minutes; the job goes on all the same. */
  waitFor(id: string, options?: WaitOptions): Promise<WithMeta<ScanResult>>
}

export type Client = {
  malware: Scans
  nsfw: { images: Scans }
  account(options?: CallOptions): Promise<WithMeta<Account>>
  /** Is the service there, and does it know the key? */
  ping(options?: CallOptions): Promise<WithMeta<object>>
}

/** What differs between Node and browsers. */
export type Platform = {
  openContent(input: FileInput): Promise<Content>
  makeTransport(fetch: ClientOptions['fetch']): Transport
  newKey(): string
}

type Request = Omit<Outgoing, 'url' | 'headers'> & { path: string; idempotencyKey?: string | null }

const defaultTimeoutMs = 120_000
const defaultFileTimeoutMs = 600_000

export function makeClient(platform: Platform, options: ClientOptions): Client {
  const { apiKey, baseUrl, retries, timeoutMs } = readOptions(options)
  const send = platform.makeTransport(options.fetch)

  async function ask<T extends object>(
    { path, idempotencyKey, ...request }: Request,
    isExpected: (value: unknown) => value is T,
    { signal, timeoutMs: ownMs }: CallOptions = {},
  ): Promise<WithMeta<T>> {
    const defaultMs = typeof request.body === 'object' ? defaultFileTimeoutMs : defaultTimeoutMs
    const ms = ownMs ?? timeoutMs ?? defaultMs
    const url = baseUrl + path
    const deadline = openDeadline(signal, ms, () => `${new URL(url).host} did not answer within ${ms / 1000} s.`)
    try {
      const headers = {
        'X-API-Key': apiKey,
        ...(typeof idempotencyKey === 'string' && { 'Idempotency-Key': idempotencyKey }),
        ...(typeof request.body === 'string' && { 'Content-Type': 'application/json' }),
      }
      const answer = await call(send, { ...request, url, headers }, { retries, deadline })
      const value = answer.text === '' ? {} : parseJson(answer.text)
      if (!isExpected(value)) throw unexpected(answer, answer.attempts, url)
      return withMeta(value, toMeta(answer, answer.attempts))
    } finally {
      deadline.close()
    }
  }

  async function sendFile<T extends object>(
    path: string,
    input: FileInput,
    options: SubmitOptions & ProgressOptions,
    isExpected: (value: unknown) => value is T,
  ) {
    const content = await platform.openContent(input)
    try {
      const form = {
        fields: toFields({ file_name: options.fileName, callback_url: options.callbackUrl }),
        content,
        onSent: (sent: number) => options.onProgress?.({ sent, total: content.length }),
      }
      const idempotencyKey = options.idempotencyKey === undefined ? platform.newKey() : options.idempotencyKey
      return await ask({ method: 'POST', path, body: form, idempotencyKey }, isExpected, options)
    } finally {
      await content.close()
    }
  }

  async function sendUrl<T extends object>(
    path: string,
    url: string | URL,
    options: SubmitOptions,
    isExpected: (value: unknown) => value is T,
  ) {
    const fields = { file_url: String(url), file_name: options.fileName, callback_url: options.callbackUrl }
    const idempotencyKey = options.idempotencyKey === undefined ? platform.newKey() : options.idempotencyKey
    const body = JSON.stringify(toFields(fields))
    return await ask({ method: 'POST', path, body, idempotencyKey }, isExpected, options)
  }

  const newScans = (root: Root): Scans => {
    const getResult = (id: string, options?: CallOptions, query = '') =>
      ask({ method: 'GET', path: paths.result(root, id) + query }, isScanResult, options)
    return {
      scanFile: (input, options = {}) => sendFile(paths.scanFile(root), input, options, isScanResult),
      scanUrl: (url, options = {}) => sendUrl(paths.scanUrl(root), url, options, isScanResult),
      submitFile: (input, options = {}) => sendFile(paths.submitFile(root), input, options, isReceipt),
      submitUrl: (url, options = {}) => sendUrl(paths.submitUrl(root), url, options, isReceipt),
      getResult: (id, options) => getResult(id, options),
      waitFor: makeWaitFor(getResult),
    }
  }

  return {
    malware: newScans(roots.malware),
    nsfw: { images: newScans(roots.nsfwImages) },
    account: (options) => ask({ method: 'GET', path: paths.account }, isAccount, options),
    ping: (options) => ask({ method: 'GET', path: paths.ping }, isAnything, options),
  }
}

const isAnything = (value: unknown): value is object => typeof value === 'object' && value !== null

const toFields = (given: Record<string, string | undefined>) =>
  Object.fromEntries(Object.entries(given).filter((entry): entry is [string, string] => entry[1] !== undefined))

import { call } from './call.ts'
import {
  type CallOptions,
  type ClientOptions,
  type ProgressOptions,
  readOptions,
  type SendOptions,
  type SubmitOptions,
} from './client-options.ts'
import type { Content, FileInput } from './content.ts'
import { openDeadline } from './deadline.ts'
import { newUnexpectedAnswer, parseJson, toMeta } from './response.ts'
import {
  type Account,
  type CompletedResult,
  type DeliveryList,
  hasReceipt,
  isAccount,
  isCompleted,
  isDeliveryList,
  isReceipt,
  isScanResult,
  type ScanReceipt,
  type ScanResult,
  type WithMeta,
  withMeta,
  withSignals,
} from './results.ts'
import type { HttpRequest, Transport } from './transport/transport.ts'
import { makeWaitFor, type WaitOptions } from './wait-for.ts'

export type Scans = {
  /** Sends a file and waits for the verdict. */
  scanFile(input: FileInput, options?: SendOptions & ProgressOptions): Promise<WithMeta<CompletedResult>>
  /** Makes the service download the URL, and waits for the verdict. */
  scanUrl(url: string | URL, options?: SendOptions): Promise<WithMeta<CompletedResult>>
  /** Submits a file for a scan in the background. */
  submitFile(input: FileInput, options?: SubmitOptions & ProgressOptions): Promise<WithMeta<ScanReceipt>>
  /** Submits a URL for a scan in the background. */
  submitUrl(url: string | URL, options?: SubmitOptions): Promise<WithMeta<ScanReceipt>>
  /** Fetches the current result, which may be pending. */
  getResult(id: string, options?: CallOptions): Promise<WithMeta<ScanResult>>
  /**
   * Fetches the signed receipt of a completed scan (docs/receipts.md). Throws ValidationFailed for a scan of a test key,
   * and UnexpectedAnswer while the scan is pending.
   */
  getSignedReceipt(id: string, options?: CallOptions): Promise<string>
  /** Waits until the scan completes. Throws TimedOut after `timeoutMs`, by default 5 minutes; the scan continues. */
  waitFor(id: string, options?: WaitOptions): Promise<WithMeta<CompletedResult>>
}

export type Client = {
  malware: Scans
  nsfw: { images: Scans }
  account(options?: CallOptions): Promise<WithMeta<Account>>
  /**
   * Lists the webhooks of the account that were made after `since`, the `until` of the call before, with their
   * signatures. Without `since` there are none yet. Waits up to `waitSeconds` for the first one.
   */
  listDeliveries(options?: CallOptions & { since?: string; waitSeconds?: number }): Promise<WithMeta<DeliveryList>>
  /** Checks that the service is reachable and accepts the API key. */
  ping(options?: CallOptions): Promise<WithMeta<object>>
}

/** The functions that Node and browsers implement differently. */
export type Platform = {
  openContent(input: FileInput): Promise<Content>
  makeTransport(fetch: ClientOptions['fetch']): Transport
  newKey(): string
}

type Call = Omit<HttpRequest, 'url' | 'headers'> & { path: string; idempotencyKey?: string | null }
type IsExpected<T> = (value: unknown) => value is T
type Request = <T extends object>(call: Call, isExpected: IsExpected<T>, options?: CallOptions) => Promise<WithMeta<T>>

const defaultTimeoutMs = 120_000
const defaultFileTimeoutMs = 600_000

export function makeClient(platform: Platform, options: ClientOptions): Client {
  const request = makeRequest(platform, options)
  return {
    malware: makeScans(platform, request, '/v1/malware'),
    nsfw: { images: makeScans(platform, request, '/v1/nsfw/images') },
    account: (options) => request({ method: 'GET', path: '/v1/me' }, isAccount, options),
    listDeliveries: ({ since, waitSeconds, ...options } = {}) => {
      const query = new URLSearchParams(toFields({ since, wait: waitSeconds?.toString() }))
      return request({ method: 'GET', path: `/webhooks/deliveries?${query}` }, isDeliveryList, options)
    },
    ping: (options) => request({ method: 'GET', path: '/v1/ping' }, isObject, options),
  }
}

/** Makes one call to the API, with retries, a deadline and a check of the response. */
function makeRequest(platform: Platform, options: ClientOptions): Request {
  const { apiKey, baseUrl, retries, timeoutMs } = readOptions(options)
  const send = platform.makeTransport(options.fetch)
  return async ({ path, idempotencyKey, ...request }, isExpected, { signal, timeoutMs: ownMs } = {}) => {
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
      const response = await call(send, { ...request, url, headers }, { retries, deadline })
      const value = response.text === '' ? {} : parseJson(response.text)
      if (!isExpected(value)) throw newUnexpectedAnswer(response, response.attempts, url)
      return withMeta(value, toMeta(response, response.attempts))
    } finally {
      deadline.close()
    }
  }
}

/** The operations of one kind of scan; `root` is the path that they share. */
function makeScans(platform: Platform, request: Request, root: string): Scans {
  const getKey = ({ idempotencyKey }: SendOptions) =>
    idempotencyKey === undefined ? platform.newKey() : idempotencyKey

  async function sendFile<T extends object>(
    path: string,
    input: FileInput,
    options: SubmitOptions & ProgressOptions,
    isExpected: IsExpected<T>,
  ) {
    const content = await platform.openContent(input)
    try {
      const body = {
        fields: toFields({ file_name: options.fileName, callback_url: options.callbackUrl }),
        content,
        onSent: (sent: number) => options.onProgress?.({ sent, total: content.length }),
      }
      return await request({ method: 'POST', path, body, idempotencyKey: getKey(options) }, isExpected, options)
    } finally {
      await content.close()
    }
  }

  async function sendUrl<T extends object>(
    path: string,
    url: string | URL,
    options: SubmitOptions,
    isExpected: IsExpected<T>,
  ) {
    const fields = { file_url: String(url), file_name: options.fileName, callback_url: options.callbackUrl }
    const body = JSON.stringify(toFields(fields))
    return await request({ method: 'POST', path, body, idempotencyKey: getKey(options) }, isExpected, options)
  }

  const getResult = (id: string, options?: CallOptions, query = '') =>
    request({ method: 'GET', path: `${root}/${encodeURIComponent(id)}${query}` }, isScanResult, options)

  const getSignedReceipt = async (id: string, options?: CallOptions) => {
    const path = `${root}/${encodeURIComponent(id)}?receipt=1`
    return (await request({ method: 'GET', path }, hasReceipt, options)).metadata.receipt
  }

  return {
    scanFile: async (input, options = {}) =>
      withSignals(await sendFile(`${root}/scan/file`, input, options, isCompleted)),
    scanUrl: async (url, options = {}) => withSignals(await sendUrl(`${root}/scan/url`, url, options, isCompleted)),
    submitFile: (input, options = {}) => sendFile(`${root}/submit/file`, input, options, isReceipt),
    submitUrl: (url, options = {}) => sendUrl(`${root}/submit/url`, url, options, isReceipt),
    getResult: (id, options) => getResult(id, options),
    getSignedReceipt,
    waitFor: makeWaitFor(getResult),
  }
}

const isObject = (value: unknown): value is object => typeof value === 'object' && value !== null

const toFields = (fields: Record<string, string | undefined>) =>
  Object.fromEntries(Object.entries(fields).filter((entry): entry is [string, string] => entry[1] !== undefined))

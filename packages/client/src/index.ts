import { type Client, type ClientOptions, makeClient } from './client.ts'
import { browser } from './platform/browser.ts'
import { makeVerifyWebhook } from './verify-webhook.ts'

export type {
  CallOptions,
  Client,
  ClientOptions,
  Progress,
  ProgressOptions,
  Scans,
  SendOptions,
  SubmitOptions,
} from './client.ts'
export type { FileInput } from './content.ts'
export {
  Aborted,
  AssayError,
  BadRequest,
  ConnectionFailed,
  NotFound,
  OutOfCredits,
  Overloaded,
  RateLimited,
  ServerError,
  TimedOut,
  Unauthorized,
  UnexpectedAnswer,
  UnsupportedMediaType,
  UnusableInput,
  ValidationFailed,
  type WebhookFault,
  WebhookRejected,
} from './errors.ts'
export type {
  Account,
  Meta,
  ProblemDetails,
  ScanReceipt,
  ScanResult,
  ScanStatus,
  ValidationProblemDetails,
  WithMeta,
} from './results.ts'
export type { VerifyOptions, VerifyWebhook, WebhookHeaders } from './verify-webhook.ts'
export type { WaitOptions } from './wait-for.ts'

export const newClient = (options: ClientOptions): Client => makeClient(browser, options)

/** The result that a webhook carries, once its signature is verified. Give the bytes of the body as they came. */
export const verifyWebhook = /* @__PURE__ */ makeVerifyWebhook(() => globalThis.crypto.subtle)

/** The exports that the entries for Node and for browsers have in common. */
export type { Client, Scans } from './client.ts'
export type {
  CallOptions,
  ClientOptions,
  Progress,
  ProgressOptions,
  SendOptions,
  SubmitOptions,
} from './client-options.ts'
export type { FileInput } from './content.ts'
export {
  Aborted,
  AssayError,
  BadRequest,
  ConnectionFailed,
  NotFound,
  NotPermitted,
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
  CompletedResult,
  DeliveryList,
  Meta,
  ProblemDetails,
  ScanReceipt,
  ScanResult,
  ScanStatus,
  SignedDelivery,
  ValidationProblemDetails,
  WithMeta,
} from './results.ts'
export type { VerifyOptions, VerifyWebhook, WebhookHeaders } from './verify-webhook.ts'
export type { WaitOptions } from './wait-for.ts'

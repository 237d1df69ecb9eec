import { maxHeaderBytes, maxJsonBytes } from './limits.ts'

/** Every kind of problem that a response can report, with the text of its page at `/problems/<kind>`. */
export const problemKinds = {
  'malformed-request': {
    title: 'Malformed request',
    meaning: 'The request cannot be parsed: its HTTP framing, its JSON or its multipart body is invalid or incomplete.',
    remedy: 'Check that the body is complete and matches its Content-Type and Content-Length, then send it again.',
  },
  'not-found': {
    title: 'Not found',
    meaning: 'There is no operation at this path.',
    remedy: 'Compare the path with the reference at /reference. Every path begins with /v1.',
  },
  'signed-out': {
    title: 'Not signed in',
    meaning: 'The request has no valid session, or the sign-in failed.',
    remedy: 'Sign in. A script sends the admin token in the header Authorization: Bearer.',
  },
  forbidden: {
    title: 'Not allowed',
    meaning: 'Your role does not permit this action, or the request lacks a valid CSRF token.',
    remedy:
      'Ask someone with the required role. In a script, send X-CSRF-Token with the value from GET /admin/v1/session.',
  },
  'key-restricted': {
    title: 'Not permitted for this key',
    meaning: 'The API key is restricted to other operations, kinds of scans or networks; detail gives the reason.',
    remedy:
      'Use another key, or ask the owner of the account to change the restrictions of this one. You were not charged.',
  },
  conflict: {
    title: 'Conflict',
    meaning: 'The current state does not permit this action; detail gives the reason.',
    remedy: 'Check the current state, then try again.',
  },
  'method-not-allowed': {
    title: 'Method not allowed',
    meaning: 'The path exists but does not support this method.',
    remedy: 'Use one of the methods in the Allow header of the response.',
  },
  'request-timeout': {
    title: 'Request timeout',
    meaning: 'The request arrived too slowly: it stalled for 30 seconds, or stayed below 1 KB per second for a minute.',
    remedy: 'Send the request again over a faster connection.',
  },
  'content-too-large': {
    title: 'Content too large',
    meaning: `The JSON body is larger than ${maxJsonBytes / 1024} KiB.`,
    remedy: 'Send only the documented fields. To scan large content, upload it or give its URL.',
  },
  'unsupported-media-type': {
    title: 'Unsupported media type',
    meaning: 'The Content-Type, charset or Content-Encoding of the body is missing or not supported here.',
    remedy:
      'Send files as multipart/form-data and URL commands as application/json in UTF-8, without Content-Encoding.',
  },
  validation: {
    title: 'Validation failed',
    meaning: 'One or more fields are missing or invalid; errors lists all of them by field.',
    remedy: 'Correct the listed fields and send the request again. You were not charged.',
  },
  'rate-limited': {
    title: 'Too many requests',
    meaning:
      'The API key has used all requests of its current rate-limit window, or your network sent too many requests without a valid key.',
    remedy: 'Wait for the number of seconds in the Retry-After header.',
  },
  'header-too-large': {
    title: 'Request header too large',
    meaning: `The request line and headers are larger than ${maxHeaderBytes / 1024} KiB.`,
    remedy: 'Send fewer or shorter headers.',
  },
  'engine-unavailable': {
    title: 'Engine unavailable',
    meaning: 'No engine could scan this content, so there is no verdict.',
    remedy: 'Try again later. You were not charged. Operators find the reason at /readyz.',
  },
  overloaded: {
    title: 'Overloaded',
    meaning: 'The queue is full: the service could not answer this request in time.',
    remedy: 'Try again after the number of seconds in the Retry-After header. You were not charged.',
  },
  unavailable: {
    title: 'Temporarily unavailable',
    meaning: 'The service cannot reach its database.',
    remedy: 'Try again after the number of seconds in the Retry-After header. You were not charged.',
  },
  'storage-full': {
    title: 'Storage full',
    meaning: 'Content that waits for a scan has filled the storage of the service.',
    remedy:
      'Try again after the number of seconds in the Retry-After header. You were not charged, and nothing was stored.',
  },
  degraded: {
    title: 'Malware scans refused',
    meaning: 'ClamAV or its official databases are missing or old, and the operator refuses malware scans until then.',
    remedy: 'Try again later. You were not charged. Operators find the reason and what to do at /readyz.',
  },
  'outcome-unknown': {
    title: 'Outcome unknown',
    meaning: 'The service lost its database while it recorded this request, which may have been accepted and charged.',
    remedy:
      'Send the request again with the same Idempotency-Key: it is then processed and charged once. If it had no key, compare the credits at /v1/me first.',
  },
  internal: {
    title: 'Server error',
    meaning: 'The service failed to process the request.',
    remedy: 'Try again later. If the error persists, give the traceId to the operator, who finds the cause in the log.',
  },
} as const

export type ProblemKind = keyof typeof problemKinds

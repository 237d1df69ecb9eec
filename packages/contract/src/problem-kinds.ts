/** The kinds of problem a caller can meet, with the words of their pages at `/problems/<kind>`. */
export const problemKinds = {
  'malformed-request': {
    title: 'Malformed request',
    meaning: 'The request could not be read: its HTTP framing, its JSON or its multipart body is broken or cut short.',
    remedy: 'Check that the body is complete and matches its Content-Type and Content-Length, then send it again.',
  },
  'not-found': {
    title: 'Not found',
    meaning: 'No operation lives at this path.',
    remedy: 'Compare the path with the reference at /reference. Every path begins with /v1.',
  },
  'method-not-allowed': {
    title: 'Method not allowed',
    meaning: 'The path exists, but not for this method.',
    remedy: 'Use one of the methods in the Allow header of the answer.',
  },
  'request-timeout': {
    title: 'Request timeout',
    meaning: 'The request arrived too slowly: it stalled for 30 seconds, or stayed under 1 KB a second for a minute.',
    remedy: 'Send it again over a better connection.',
  },
  'content-too-large': {
    title: 'Content too large',
    meaning: 'The JSON body is larger than 64 KiB.',
    remedy: 'Send only the documented members. To scan large content, upload it or give its URL.',
  },
  'unsupported-media-type': {
    title: 'Unsupported media type',
    meaning:
      'The body has a Content-Type, charset or Content-Encoding that this endpoint does not take, or none at all.',
    remedy:
      'Send files as multipart/form-data and URL commands as application/json in UTF-8, without Content-Encoding.',
  },
  validation: {
    title: 'Validation failed',
    meaning: 'One or more fields are missing or wrong. All of them are listed in errors, by field.',
    remedy: 'Mend the listed fields and send the request again. It was not charged.',
  },
  'rate-limited': {
    title: 'Too many requests',
    meaning: 'The key has used up the requests of its current window.',
    remedy: 'Wait for the number of seconds in the Retry-After header.',
  },
  'header-too-large': {
    title: 'Request header too large',
    meaning: 'The request line and headers are larger than 32 KiB.',
    remedy: 'Send fewer or shorter headers.',
  },
  'engine-unavailable': {
    title: 'Engine unavailable',
    meaning: 'No engine could give a verdict on this content. What was not scanned is never called clean.',
    remedy: 'Try again later. It was not charged. An operator finds the reason at /readyz.',
  },
  overloaded: {
    title: 'Overloaded',
    meaning: 'So much waits for its turn already that one more would not be answered in time.',
    remedy: 'Try again after the number of seconds in the Retry-After header. It was not charged.',
  },
  unavailable: {
    title: 'Temporarily unavailable',
    meaning: 'The service cannot reach its database at the moment.',
    remedy: 'Try again after the number of seconds in the Retry-After header. Nothing was charged.',
  },
  'storage-full': {
    title: 'Storage full',
    meaning: 'There is no room for more content at the moment: scans that wait take up what there is.',
    remedy: 'Try again after the number of seconds in the Retry-After header. Nothing was charged or kept.',
  },
  'outcome-unknown': {
    title: 'Outcome unknown',
    meaning: 'The database was lost while this was being recorded: it may have been accepted and charged, or not.',
    remedy:
      'Send it again with the Idempotency-Key of this request: then it is done and charged once. Without one, compare the credits at /v1/me first.',
  },
  internal: {
    title: 'Server error',
    meaning: 'Something went wrong on our side.',
    remedy: 'Try again later. When it lasts, give the traceId to the operator: the log holds the cause under it.',
  },
} as const

export type ProblemKind = keyof typeof problemKinds

import { headers, maxKeyLength, maxWaitSeconds, receiptKeysPath } from '@assay/contract'

export const idParameter = {
  name: 'id',
  in: 'path',
  required: true,
  description: 'Identifier of the job, as returned when it was submitted',
  schema: { type: 'string', format: 'uuid' },
}

export const waitParameter = {
  name: 'wait',
  in: 'query',
  description: 'Seconds to wait for a pending job. The response is sent as soon as the job completes.',
  schema: { type: 'integer', minimum: 0, maximum: maxWaitSeconds, default: 0 },
}

export const receiptParameter = {
  name: 'receipt',
  in: 'query',
  description:
    `\`1\` adds \`metadata.receipt\` to a completed result: the result, signed (JWS, Ed25519). The keys that verify ` +
    `it are at \`${receiptKeysPath}\`.`,
  schema: { type: 'string', enum: ['1'] },
}

export const keyParameter = {
  name: headers.idempotencyKey,
  in: 'header',
  description: 'Repeating a request with the same key within a day returns the first response and is charged once.',
  schema: { type: 'string', minLength: 1, maxLength: maxKeyLength },
}

export const testParameter = {
  name: headers.test,
  in: 'header',
  description: 'The response that a request with a test key asks for. Other keys ignore this header.',
  schema: { $ref: '#/components/schemas/TestAnswer' },
  // Without an example the reference would send the first value of the schema with every request.
  examples: { default: { summary: 'Not sent', 'x-disabled': true } },
}

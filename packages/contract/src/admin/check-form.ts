import type { TSchema } from 'typebox'
import { Errors } from 'typebox/schema'
import { name, rate, sha256, signInCode, totpCode, webAddress } from './fields.ts'

/**
 * Validates a form against its schema and returns messages by field; an empty object means that the form is valid.
 * The console and the service both use it, so that they report the same messages.
 */
export function checkForm(schema: TSchema, form: unknown): Record<string, string[]> {
  const errors: Record<string, string[]> = {}
  const [, found] = Errors(schema, form)
  for (const { keyword, instancePath, params } of found) {
    if (keyword === 'required') {
      for (const field of (params as { requiredProperties: string[] }).requiredProperties) add(field, requiredMessage)
    } else if (keyword !== 'anyOf' && (params as { type?: unknown }).type !== 'null') {
      add(instancePath.split('/')[1] ?? '', toMessage(keyword, params as Record<string, unknown>))
    }
  }
  for (const [field, value] of Object.entries(Object(form) as object)) {
    if (typeof value === 'string' && value.includes('\u0000')) add(field, 'Remove the NUL character.')
  }
  return errors

  function add(field: string, message: string) {
    const messages = errors[field] ?? []
    if (!messages.includes(message)) errors[field] = [...messages, message]
  }
}

/** Message for a field that must not be empty. */
export const requiredMessage = 'Required.'
const invalidMessage = 'Invalid format.'

function toMessage(keyword: string, params: Record<string, unknown>): string {
  switch (keyword) {
    case 'minLength':
      return params.limit === 1 ? requiredMessage : `Enter at least ${params.limit} characters.`
    case 'maxLength':
      return `Enter at most ${params.limit} characters.`
    case 'minimum':
      return `Enter ${params.limit} or more.`
    case 'maximum':
      return `Enter ${params.limit} or less.`
    case 'format':
      return formatMessages[String(params.format)] ?? invalidMessage
    case 'enum':
      return `Choose one of ${(params.allowedValues as string[]).join(', ')}.`
    case 'pattern':
      return toPatternMessage(params.pattern)
    case 'type':
      return params.type === 'integer' ? 'Enter a whole number.' : `Must be of type ${params.type}.`
    default:
      return invalidMessage
  }
}

function toPatternMessage(pattern: unknown): string {
  const source = pattern instanceof RegExp ? pattern.source : pattern
  const [, message] = patternMessages.find(([schema]) => 'pattern' in schema && schema.pattern === source) ?? []
  return message ?? invalidMessage
}

const patternMessages: [TSchema, string][] = [
  [name, requiredMessage],
  [totpCode, 'Enter the six digits that your authenticator app shows.'],
  [signInCode, 'Enter the six digits that your authenticator app shows, or a recovery code.'],
  [sha256, 'Enter 64 lower-case hexadecimal digits.'],
  [rate, 'Enter a rate such as 600/1m.'],
  [webAddress, 'Enter an address that begins with https:// or http://.'],
]

const formatMessages: Record<string, string> = {
  email: 'Enter an address such as ada@example.com.',
  uuid: 'Enter a UUID.',
  date: 'Enter a date such as 2027-01-31.',
  'date-time': 'Enter a time such as 2027-01-31T12:00:00Z.',
}

import type { TSchema } from 'typebox'
import { Errors } from 'typebox/schema'
import { name, rate, sha256, totpCode, webAddress } from './fields.ts'

/** What is wrong with a form, by field, in sentences; the same on both sides of the wire. Nothing when it is right. */
export function checkForm(schema: TSchema, form: unknown): Record<string, string[]> {
  const errors: Record<string, string[]> = {}
  const [, found] = Errors(schema, form)
  for (const { keyword, instancePath, params } of found) {
    if (keyword === 'required') {
      for (const field of (params as { requiredProperties: string[] }).requiredProperties) add(field, 'This is needed.')
    } else if (keyword !== 'anyOf' && (params as { type?: unknown }).type !== 'null') {
      add(instancePath.split('/')[1] ?? '', toSentence(keyword, params as Record<string, unknown>))
    }
  }
  for (const [field, value] of Object.entries(Object(form) as object)) {
    if (typeof value === 'string' && value.includes('\u0000')) add(field, 'This has a character that cannot be stored.')
  }
  return errors

  function add(field: string, sentence: string) {
    const said = errors[field] ?? []
    if (!said.includes(sentence)) errors[field] = [...said, sentence]
  }
}

function toSentence(keyword: string, params: Record<string, unknown>): string {
  switch (keyword) {
    case 'minLength':
      return params.limit === 1 ? 'This is needed.' : `Give at least ${params.limit} characters.`
    case 'maxLength':
      return `Give at most ${params.limit} characters.`
    case 'minimum':
      return `Give ${params.limit} or more.`
    case 'maximum':
      return `Give ${params.limit} or less.`
    case 'format':
      return formats[String(params.format)] ?? 'This has another form.'
    case 'enum':
      return `Choose one of ${(params.allowedValues as string[]).join(', ')}.`
    case 'pattern':
      return toForm(params.pattern)
    case 'type':
      return params.type === 'integer' ? 'Give a whole number.' : `This must be of type ${params.type}.`
    default:
      return 'This has another form.'
  }
}

function toForm(pattern: unknown): string {
  const source = pattern instanceof RegExp ? pattern.source : pattern
  const [, sentence] = patterns.find(([schema]) => 'pattern' in schema && schema.pattern === source) ?? []
  return sentence ?? 'This has another form.'
}

const patterns: [TSchema, string][] = [
  [name, 'This is needed.'],
  [totpCode, 'Give the six digits that the app shows.'],
  [sha256, 'Give 64 hex digits in small letters.'],
  [rate, 'Give a rate such as 600/1m.'],
  [webAddress, 'Give an address that begins with https:// or http://.'],
]

const formats: Record<string, string> = {
  email: 'Give an address such as ada@example.com.',
  uuid: 'This is not an id.',
  date: 'Give a day such as 2027-01-31.',
  'date-time': 'Give a time such as 2027-01-31T12:00:00Z.',
}

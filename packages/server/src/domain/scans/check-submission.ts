import { hash } from 'node:crypto'
import {
  headers,
  imageFormats,
  maxContentBytes,
  maxFileNameLength,
  maxKeyLength,
  type ScanKind,
  type ScanMode,
} from '@assay/contract'
import type { Content } from '../content/content.ts'
import { findImageFormat } from '../content/image-format.ts'
import { type FieldErrors, Problem } from '../problem.ts'
import { type AddressPolicy, checkWebAddress } from './web-address.ts'

/** The file part of a form. Reading stops at the size limit. */
export type UploadedFile<C = Content> = { content: C } | { tooLarge: true } | { missing: true }

/** The fields of a request before they are checked, of any type; undefined and null mean that a field is absent. */
export type RequestFields = { file_name?: unknown; file_url?: unknown; callback_url?: unknown }

/** `partName` is the filename of the file part; `repeated` lists the fields that occur more than once. */
export type Upload<C = Content> = {
  fields: RequestFields
  file: UploadedFile<C>
  partName: string | undefined
  repeated: string[]
}

type Target = { kind: ScanKind; mode: ScanMode }

/** Returns all errors of a request with a file, by field. */
export function checkFileSubmission(target: Target, { fields, file, repeated }: Upload, policy: AddressPolicy) {
  const errors: Record<string, string[]> = {
    file: checkFile(target, file),
    file_name: checkFileName(target.kind, fields.file_name),
    callback_url: checkCallback(target.mode, fields.callback_url, policy),
  }
  for (const field of repeated) {
    const isIgnored = field === 'callback_url' && target.mode === 'sync'
    if (!isIgnored && Object.hasOwn(errors, field)) errors[field]?.push('must not be given more than once.')
  }
  return toFieldErrors(errors)
}

/** Returns all errors of a request with a URL, by field. */
export function checkUrlSubmission(target: Target, fields: RequestFields, policy: AddressPolicy) {
  const url = fields.file_url
  return toFieldErrors({
    file_url: url === undefined || url === null ? ['is required.'] : checkUrl(url, policy),
    file_name: checkFileName(target.kind, fields.file_name),
    callback_url: checkCallback(target.mode, fields.callback_url, policy),
  })
}

/** The field `file_name` wins over the filename of the part. A filename that is no valid name is ignored. */
export function toContentName({ fields, partName }: Pick<Upload, 'fields' | 'partName'>): string | null {
  const name = fields.file_name
  if (typeof name === 'string') return name
  return partName === undefined || checkFileName('malware', partName).length > 0 ? null : partName
}

/** The text of a field that was checked before; null when it is absent. */
export const findText = (value: unknown): string | null => (typeof value === 'string' ? value : null)

function checkFile({ kind, mode }: Target, file: UploadedFile): string[] {
  if ('missing' in file) return ['is required: send the content as a form part named file, with a filename.']
  if ('tooLarge' in file) return [`must not be larger than ${maxContentBytes[kind][mode] / 1024 / 1024} MB.`]
  if (file.content.bytes === 0) return ['must not be empty.']
  if (kind === 'nsfw_image' && findImageFormat(file.content.head) === undefined) {
    return ['must be a JPEG, PNG, GIF or WebP image.']
  }
  return []
}

function checkFileName(kind: ScanKind, name: unknown): string[] {
  if (name === undefined || name === null) return []
  if (typeof name !== 'string') return ['must be a string.']
  if (name.trim() === '') return ['must not be empty.']
  const errors: string[] = []
  if (name.length > maxFileNameLength && [...name].length > maxFileNameLength) {
    errors.push(`must not be longer than ${maxFileNameLength} characters.`)
  }
  if (/[\u0000-\u001f\u007f-\u009f]/.test(name) || !name.isWellFormed()) {
    errors.push('must not contain control characters or broken characters.')
  }
  if (kind === 'nsfw_image' && !hasImageExtension(name)) {
    errors.push(`must end in ${Object.values(imageFormats).flat().join(', ')}, or have no extension.`)
  }
  return errors
}

function hasImageExtension(name: string): boolean {
  const extension = /[^/\\](\.[^./\\]*)$/.exec(name.trim())?.[1]?.toLowerCase()
  return extension === undefined || extension === '.' || Object.values(imageFormats).flat().includes(extension)
}

/** Synchronous scans ignore the callback, like every unknown field. */
function checkCallback(mode: ScanMode, url: unknown, policy: AddressPolicy): string[] {
  return mode === 'sync' || url === undefined || url === null ? [] : checkUrl(url, policy)
}

const checkUrl = (url: unknown, policy: AddressPolicy): string[] =>
  typeof url === 'string' ? checkWebAddress(url, policy) : ['must be a string.']

/** Throws a validation Problem when any field has an error. */
export function requireValid(errors: FieldErrors) {
  if (Object.keys(errors).length > 0) throw new Problem({ kind: 'validation', errors })
}

/** Makes whole sentences of the messages: "file_url must not be empty." */
function toFieldErrors(errors: Record<string, string[]>): FieldErrors {
  const sentences: FieldErrors = {}
  for (const [field, messages] of Object.entries(errors)) {
    if (messages.length > 0) sentences[field] = messages.map((message) => `${field} ${message}`)
  }
  return sentences
}

const { idempotencyKey: header } = headers

/** Returns the errors of an idempotency key. */
export const checkIdempotencyKey = (key: string): string[] =>
  key.length > 0 && key.length <= maxKeyLength && /^[\x20-\x7e]*$/.test(key)
    ? []
    : [`${header} must be 1 to ${maxKeyLength} visible ASCII characters.`]

/** Identifies a request by all its values in a fixed order, to tell a repeat from another request. */
export const toFingerprint = (values: (string | null)[]): string => hash('sha256', JSON.stringify(values))

/** Refuses a key that was used for another request, because either of the two may be the one that was meant. */
export function findMismatch(first: { fingerprint: string }, repeat: { fingerprint: string }): Problem | undefined {
  if (first.fingerprint === repeat.fingerprint) return undefined
  const error = `${header} was used for another request within the last 24 hours.`
  return new Problem({ kind: 'validation', errors: { [header]: [error] } })
}

import { hash } from 'node:crypto'

export type Header = { name: string; value: string }

/** The secret part of a credential. It is sealed in the database, and never shown again. */
export type CredentialValues =
  | { kind: 'headers'; headers: Header[] }
  | { kind: 's3'; accessKeyId: string; secretAccessKey: string }

/** A name that people see in place of a value, and by which they can tell which value is stored. */
export type ShownValue = { name: string; fingerprint: string }

export const maxCredentials = 50
const maxHeaders = 20
const maxNameLength = 100
/** Servers commonly refuse heads of more than 8 KB, and the request has some headers of its own. */
const maxHeaderBytes = 7000
const maxKeyLength = 200

/**
 * Headers that frame the message, belong to the connection or to proxies, ask for a part of the content or for another
 * method, or that Assay needs to set itself.
 */
const forbiddenNames = new Set(
  `accept-encoding connection date expect host http2-settings keep-alive max-forwards origin proxy-connection range te
   trailer transfer-encoding upgrade via x-http-method x-http-method-override x-method-override`.split(/\s+/),
)
const forbiddenStarts = ['content-', 'if-', 'proxy-', 'sec-', 'access-control-']

/** Returns the errors of headers that somebody wants to store. The sentences name headers and never their values. */
export function checkHeaders(headers: Header[]): string[] {
  if (headers.length === 0) return ['Enter at least one header.']
  if (headers.length > maxHeaders) return [`Enter at most ${maxHeaders} headers.`]
  const names = headers.map(({ name }) => name.toLowerCase())
  const errors = headers.flatMap(({ name, value }, i) => {
    // A whole line in place of the name would put its value into the sentence.
    const shown = /^[\w.-]{1,40}$/.test(name) ? name : `number ${i + 1}`
    const error = findHeaderError(name.toLowerCase(), value)
    if (error === undefined && names.indexOf(name.toLowerCase()) === i) return []
    return [`The header ${shown} ${error ?? 'appears twice'}.`]
  })
  const bytes = headers.reduce((sum, { name, value }) => sum + name.length + value.length + 4, 0)
  return bytes > maxHeaderBytes ? [...errors, `Enter at most ${maxHeaderBytes} bytes of headers.`] : errors
}

function findHeaderError(name: string, value: string): string | undefined {
  if (name.length > maxNameLength || !/^[!#$%&'*+.^_`|~0-9a-z-]+$/.test(name)) return 'does not have a valid name'
  if (forbiddenNames.has(name) || forbiddenStarts.some((start) => name.startsWith(start))) {
    return 'cannot be stored, because Assay or the connection sets it'
  }
  if (value === '' || value !== value.trim()) return 'has an empty value, or blanks around it'
  return /^[\x20-\x7e]*$/.test(value) ? undefined : 'has a value with control characters or letters outside of ASCII'
}

/** Returns the errors of an access key. */
export function checkAccessKey({ accessKeyId, secretAccessKey }: { accessKeyId: string; secretAccessKey: string }) {
  const errors: string[] = []
  // A slash or comma would end the identifier within the header that carries it.
  if (accessKeyId.length > maxKeyLength || !/^[\x21-\x7e]+$/.test(accessKeyId) || /[/,]/.test(accessKeyId)) {
    errors.push('The access key ID is not valid.')
  }
  if (accessKeyId.startsWith('ASIA')) {
    errors.push('The access key is a temporary one, which needs a session token and ends soon. Enter a permanent key.')
  }
  if (secretAccessKey.length > maxKeyLength || !/^[\x21-\x7e]+$/.test(secretAccessKey)) {
    errors.push('The secret access key is not valid.')
  }
  return errors
}

/** Shows people of the values their names, and the first 32 bits of the SHA-256 of each value. */
export function showValues(values: CredentialValues): ShownValue[] {
  const all =
    values.kind === 'headers'
      ? values.headers
      : [
          { name: 'access key ID', value: values.accessKeyId },
          { name: 'secret access key', value: values.secretAccessKey },
        ]
  return all.map(({ name, value }) => ({ name, fingerprint: hash('sha256', value, 'hex').slice(0, 8) }))
}

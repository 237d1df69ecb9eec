import { type Encapsulated, findOne, listValues, type ParsedHeaders } from '../../../domain/icap/icap-message.ts'
import { type Doubt, EngineDown } from '../../../domain/ports/engines.ts'
import { maxMatchedLength, toMatchedName, unnamedThreat } from '../adapter.ts'

/** The server replaced the message by a page of its own, without a header that says why. */
export const blockedContent = 'BlockedContent'
/** The server sent other content back, without a header that says why. */
export const changedContent = 'ChangedContent'

/** A header of the operator's product, and the pattern of its values that name a threat. */
export type ThreatHeader = { header: string; pattern: RegExp }

type ToNames = (value: string) => string[]

const knownHeaders: [header: string, toNames: ToNames][] = [
  // `Type=0; Resolution=2; Threat=Eicar-Test-Signature;`
  ['x-infection-found', (value) => [/(?:^|;)\s*Threat=([^;]+)/i.exec(value)?.[1]?.trim() || unnamedThreat]],
  ['x-virus-id', (value) => [value || unnamedThreat]],
  ['x-virus-name', (value) => [value || unnamedThreat]],
  ['x-violations-found', listViolations],
]

/** Lists the names in the headers of a response, and in those of the HTTP message within it. */
export function listThreats(
  headers: ParsedHeaders,
  encapsulated: Encapsulated,
  ownHeader: ThreatHeader | undefined,
): string[] {
  const inner = encapsulated['res-hdr'] ?? encapsulated['req-hdr']
  const own = ownHeader === undefined ? [] : [toOwnRow(ownHeader)]
  const names = [...own, ...knownHeaders].flatMap(([name, toNames]) =>
    [...(headers.get(name) ?? []), ...listInner(inner, name)].flatMap(toNames),
  )
  const named = names.filter((name) => name !== unnamedThreat)
  return [...new Set(named.length > 0 ? named : names)]
}

const toOwnRow = ({ header, pattern }: ThreatHeader): [string, ToNames] => [
  header.toLowerCase(),
  (value) => {
    if (value.length > maxMatchedLength) throw new EngineDown(`the header ${header} is longer than ${maxMatchedLength}`)
    const found = pattern.exec(value)
    return found === null ? [] : [toMatchedName(found)]
  },
]

/**
 * The number of violations, then four lines for each: file, threat, its number, and what was done. `0` alone is none;
 * any other value that has not this form is a threat without a name.
 */
function listViolations(value: string): string[] {
  const [count, ...lines] = value.split('\n')
  if (count === '0' && lines.length === 0) return []
  const names = lines.filter((_line, index) => index % 4 === 1)
  return Number(count) === names.length && lines.length === 4 * names.length && names.every(Boolean)
    ? names
    : [unnamedThreat]
}

function listInner(head: Buffer | undefined, name: string): string[] {
  if (head === undefined) return []
  const lines = head.toString('latin1').split('\r\n').slice(1)
  return lines
    .filter((line) => line.slice(0, Math.max(0, line.indexOf(':'))).toLowerCase() === name)
    .map((line) => line.slice(line.indexOf(':') + 1).trim())
}

/** Codes with which servers say that they could not open content, also those of Assay's own listener. */
const doubtsByCode = new Map<string | undefined, Doubt>([
  ['password_protected', 'EncryptedContent'],
  ['max_archive_layers_exceeded', 'ScanLimitExceeded'],
  ['decode_error', 'UnsupportedContainer'],
])

/** The doubt in the header of an error, when the content is its cause. */
export const findDoubt = (headers: ParsedHeaders): Doubt | undefined =>
  doubtsByCode.get(headers.get('x-error-code')?.[0])

/** The description of a service in the response of its server to OPTIONS. */
export type IcapOptions = {
  /** Bytes of a preview; undefined when the service takes none. */
  preview: number | undefined
  /** Extensions of files, or `*`, that are sent with a preview; undefined when the server does not say. */
  previewed: string[]
  /** Extensions of files, or `*`, that are sent without one. */
  complete: string[]
  answers204: boolean
  maxConnections: number | undefined
  service: string | undefined
  tag: string | undefined
  /** The time, by `performance.now()`, until which the description counts. */
  validUntil: number
}

const maxTtlSeconds = 3600
const maxPreviewBytes = 256 * 1024

export function toOptions(headers: ParsedHeaders): IcapOptions {
  const ttl = toNumber(findOne(headers, 'options-ttl')) ?? maxTtlSeconds
  const preview = toNumber(findOne(headers, 'preview'))
  return {
    preview: preview === undefined ? undefined : Math.min(preview, maxPreviewBytes),
    previewed: listValues(headers, 'transfer-preview'),
    // A file that the server wants to ignore is sent all the same: only an answer to the content says that it is clean.
    complete: [...listValues(headers, 'transfer-complete'), ...listValues(headers, 'transfer-ignore')],
    answers204: listValues(headers, 'allow').includes('204'),
    maxConnections: toNumber(findOne(headers, 'max-connections')) || undefined,
    service: headers.get('service')?.[0],
    tag: findTag(headers),
    validUntil: performance.now() + Math.min(ttl, maxTtlSeconds) * 1000,
  }
}

export const findTag = (headers: ParsedHeaders): string | undefined =>
  headers.get('istag')?.[0]?.replaceAll(/^"|"$/g, '')

/** The bytes of the preview with which the server wants this file; undefined for none. */
export function choosePreview({ preview, previewed, complete }: IcapOptions, fileName: string): number | undefined {
  if (preview === undefined) return undefined
  const extension = /\.([^.]*)$/.exec(fileName)?.[1]?.toLowerCase() ?? ''
  if (previewed.includes(extension)) return preview
  if (complete.includes(extension)) return undefined
  return complete.includes('*') && !previewed.includes('*') ? undefined : preview
}

const toNumber = (text: string | undefined) => (text !== undefined && /^\d{1,9}$/.test(text) ? Number(text) : undefined)

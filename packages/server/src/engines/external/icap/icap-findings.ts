import type { Encapsulated } from '../../../domain/icap/encapsulated.ts'
import type { ParsedHeaders } from '../../../domain/icap/icap-headers.ts'
import { type Doubt, EngineDown } from '../../../domain/ports/engines.ts'
import { maxMatchedLength, toMatchedName, unnamedThreat } from '../matched-name.ts'

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

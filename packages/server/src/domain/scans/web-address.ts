import { maxUrlLength } from '@assay/contract'
import type { AddressPolicy } from './public-address.ts'

/** The fetch standard's bad ports: other protocols live there, and an HTTP request could be taken for theirs. */
const badPorts = new Set([
  0, 1, 7, 9, 11, 13, 15, 17, 19, 20, 21, 22, 23, 25, 37, 42, 43, 53, 69, 77, 79, 87, 95, 101, 102, 103, 104, 109, 110,
  111, 113, 115, 117, 119, 123, 135, 137, 139, 143, 161, 179, 389, 427, 465, 512, 513, 514, 515, 526, 530, 531, 532,
  540, 548, 554, 556, 563, 587, 601, 636, 989, 990, 993, 995, 1719, 1720, 1723, 2049, 3659, 4045, 4190, 5060, 5061,
  6000, 6566, 6665, 6666, 6667, 6668, 6669, 6679, 6697, 10080,
])

/**
 * What is wrong with an address that somebody wants called. The text is judged before it is parsed: the WHATWG parser
 * silently drops tabs and newlines, trims blanks and turns backslashes round. Names are judged when they are resolved.
 */
export function checkWebAddress(text: string, policy: AddressPolicy): string[] {
  if (text === '') return ['must not be empty.']
  if (text.length > maxUrlLength) return [`must not be longer than ${maxUrlLength} characters.`]
  if (/[\u0000-\u0020\u007f-\u00a0\u2028\u2029\\]/u.test(text) || !text.isWellFormed()) {
    return ['must not contain blanks, control characters or backslashes.']
  }
  if (!/^https?:\/\/[^/?#]/i.test(text)) return ['must be an absolute http or https URL with a host.']
  const url = URL.parse(text)
  if (url === null || /^\.*$/.test(url.hostname)) return ['must be a valid URL.']
  const errors: string[] = []
  if (url.username !== '' || url.password !== '' || /^https?:\/\/[^/?#]*@/i.test(text)) {
    errors.push('must not contain a user name or password.')
  }
  if (url.port !== '' && badPorts.has(Number(url.port))) errors.push(`must not use port ${url.port}.`)
  const literal = findLiteral(url.hostname)
  if (literal !== undefined && !policy.isAllowed(literal))
    errors.push('must not point to an address that is not public.')
  return errors
}

/** The parser has brought every spelling (decimal, octal, hex, short) to one by now. */
function findLiteral(hostname: string): string | undefined {
  if (hostname.startsWith('[')) return hostname.slice(1, -1)
  const bare = hostname.replace(/\.$/, '')
  return /^\d+\.\d+\.\d+\.\d+$/.test(bare) ? bare : undefined
}

import { IcapFault } from './icap-headers.ts'

type HeaderSection = 'req-hdr' | 'res-hdr'
type BodySection = 'req-body' | 'res-body' | 'null-body' | 'opt-body'

/** The headers of the HTTP message as they arrived, each with the empty line at its end. */
export type Encapsulated = { [name in HeaderSection]?: Buffer }

/** The sections of a message: its headers in order, with their lengths, and the kind of body that follows. */
export type Layout = { headers: { name: HeaderSection; bytes: number }[]; body: BodySection }

/** The sections that a message may carry, in this order. */
export type SectionRules = { headers: HeaderSection[]; bodies: BodySection[] }

export const noSections: Layout = { headers: [], body: 'null-body' }

/** Limit on the headers of one message, all sections together. */
const maxHeaderBytes = 128 * 1024

/** Parses `req-hdr=0, res-hdr=137, res-body=296`. Each section ends at the offset of the next one. */
export function parseEncapsulated(text: string, rules: SectionRules): Layout {
  const sections = text.split(',').map(toSection)
  const body = sections.at(-1)
  if (body === undefined || !isOneOf(rules.bodies, body.name)) {
    throw newInvalid('does not end with a body that this message may have')
  }
  const headers = sections.slice(0, -1).map(({ name, start }, i) => {
    const bytes = (sections[i + 1]?.start ?? 0) - start
    if (bytes <= 0) throw newInvalid('has offsets that do not increase')
    if (!isOneOf(rules.headers, name)) throw newInvalid('has sections that this message may not have')
    return { name, bytes }
  })
  if (sections[0]?.start !== 0) throw newInvalid('does not start at 0')
  if (body.start > maxHeaderBytes) throw newInvalid(`has more than ${maxHeaderBytes} bytes of headers`)
  const positions = headers.map(({ name }) => rules.headers.indexOf(name))
  const inOrder = positions.every((position, i) => position > (positions[i - 1] ?? -1))
  if (!inOrder) throw newInvalid('has sections in the wrong order')
  return { headers, body: body.name }
}

const isOneOf = <Name extends string>(names: Name[], name: string): name is Name => names.some((one) => one === name)

function toSection(text: string): { name: string; start: number } {
  const [, name, start] = /^\s*([a-z]{3,4}-[a-z]{3,4})\s*=\s*(\d{1,9})\s*$/i.exec(text) ?? []
  if (name === undefined) throw newInvalid('is not valid')
  return { name: name.toLowerCase(), start: Number(start) }
}

const newInvalid = (what: string) => new IcapFault(400, `The Encapsulated header ${what}.`)

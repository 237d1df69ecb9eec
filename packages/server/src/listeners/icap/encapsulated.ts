import { IcapFault } from './fault.ts'

type SectionName = 'req-hdr' | 'res-hdr' | 'req-body' | 'res-body' | 'null-body' | 'opt-body'
type BodyName = Exclude<SectionName, 'req-hdr' | 'res-hdr'>

/** Where the headers of the message lie, one behind the other, and what comes after them. */
export type Layout = { headers: { name: 'req-hdr' | 'res-hdr'; bytes: number }[]; body: BodyName }

/** What each method may carry, in this order. */
const allowed: Record<string, { headers: string[]; bodies: string[] }> = {
  REQMOD: { headers: ['req-hdr'], bodies: ['req-body', 'null-body'] },
  RESPMOD: { headers: ['req-hdr', 'res-hdr'], bodies: ['res-body', 'null-body'] },
  OPTIONS: { headers: [], bodies: ['null-body'] },
}

/** Of all the headers of one message. */
const maxHeaderBytes = 128 * 1024

/** `req-hdr=0, res-hdr=137, res-body=296`: the offsets are where each begins, so each ends where the next one begins. */
export function parseEncapsulated(method: string, text: string): Layout {
  const sections = text.split(',').map(toSection)
  const body = sections.at(-1)
  const rules = allowed[method]
  if (body === undefined || rules === undefined || !rules.bodies.includes(body.name)) {
    throw broken(`ends with no body that ${method} has`)
  }
  const headers = sections.slice(0, -1).map(({ name, start }, i) => {
    const bytes = (sections[i + 1]?.start ?? 0) - start
    if (bytes <= 0) throw broken('has offsets that do not grow')
    return { name, bytes }
  })
  if (sections[0]?.start !== 0) throw broken('does not begin at 0')
  if (body.start > maxHeaderBytes) throw broken(`has more than ${maxHeaderBytes} bytes of headers`)
  const places = headers.map(({ name }) => rules.headers.indexOf(name))
  const inOrder = places.every((place, i) => place !== -1 && place > (places[i - 1] ?? -1))
  if (!inOrder) throw broken(`has headers that ${method} does not have, or in another order`)
  return { headers: headers as Layout['headers'], body: body.name as BodyName }
}

function toSection(text: string): { name: string; start: number } {
  const [, name, start] = /^\s*([a-z]{3,4}-[a-z]{3,4})\s*=\s*(\d{1,9})\s*$/i.exec(text) ?? []
  if (name === undefined) throw broken('cannot be read')
  return { name: name.toLowerCase(), start: Number(start) }
}

const broken = (what: string) => new IcapFault(400, `The Encapsulated header ${what}.`)

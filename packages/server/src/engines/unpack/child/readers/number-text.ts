import { hasNumberList } from '../../../../domain/content/number-list.ts'
import type { Members, Reader, Reading } from '../reader.ts'
import type { Source } from '../source.ts'
import { type EncodedData, giveEncoded } from './encoded-members.ts'
import { decodeNumbers, listNumberLists } from './number-lists.ts'
import { accountForText, findTextEnd } from './text-end.ts'
import { hasControls } from './text-lines.ts'

const firstBytes = 32

/** PDF and PostScript have lists of numbers, which are no bytes. */
const otherText = /^(?:%PDF-|%!|\{\\rt)/

/** Reads bytes that program text or data has as a list of numbers, such as `0x58, 0x35` or `88, 53`. */
export const numberTextReader: Reader = {
  name: 'lists of numbers',
  recognizes: (source) => {
    const head = source.read(0, firstBytes)
    return !hasControls(head) && !otherText.test(head.toString('latin1')) && mayHoldList(source)
  },
  read: async (source, members) => readNumbers(source, members),
}

const pieceBytes = 2 ** 20
const overlapBytes = 4096

function mayHoldList(source: Source): boolean {
  for (let at = 0; at < source.bytes; at += pieceBytes)
    if (hasNumberList(source.read(at, at + pieceBytes + overlapBytes).toString('latin1'))) return true
  return false
}

async function readNumbers(source: Source, members: Members): Promise<Reading> {
  const textEnd = findTextEnd(source)
  const hasData = await giveEncoded(members, '[further numbers]', () => listEncoded(source, textEnd))
  // The text itself was scanned with the content.
  return { accounted: hasData ? accountForText(textEnd) : [], doubts: [] }
}

function* listEncoded(source: Source, end: number): Generator<EncodedData> {
  for (const list of listNumberLists(source, end))
    yield { path: `[numbers at ${list.start}]`, decode: () => decodeNumbers(source, list) }
}

import { hasNumberList } from '../../../../domain/content/number-list.ts'
import type { Members, Reader, Reading } from '../reader.ts'
import type { Source } from '../source.ts'
import { decodeNumbers, listNumberLists } from './number-lists.ts'
import { accountForText, findTextEnd } from './text-end.ts'
import { hasControls } from './text-lines.ts'

const firstBytes = 32
/** Lists that are members of their own. The bytes of all others are one member. */
const maxLists = 1000

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
  let count = 0
  for (const list of listNumberLists(source, textEnd)) {
    if (++count > maxLists) {
      await members.give({ path: '[further numbers]', pieces: decodeFurther(source, textEnd) })
      break
    }
    await members.give({ path: `[numbers at ${list.start}]`, pieces: decodeNumbers(source, list) })
  }
  // The text itself was scanned with the content.
  return { accounted: count > 0 ? accountForText(textEnd) : [], doubts: [] }
}

function* decodeFurther(source: Source, end: number): Generator<Buffer> {
  let count = 0
  for (const list of listNumberLists(source, end)) {
    if (++count <= maxLists) continue
    yield* decodeNumbers(source, list)
    yield lineEnd
  }
}

const lineEnd = Buffer.from('\n')

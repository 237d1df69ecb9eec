import type { Members, Reader, Reading } from '../reader.ts'
import type { Source } from '../source.ts'
import { type EncodedData, giveEncoded } from './encoded-members.ts'
import { decodeHexRun, type HexRun, listHexRuns } from './hex-runs.ts'
import { accountForText, findTextEnd } from './text-end.ts'
import { countControls } from './text-lines.ts'

const firstBytes = 32
/** A control character in a few is damage: programs that read digits pass over it. */
const maxControls = 2
const headBytes = 65_536
const maxControlsOfHead = 16

/** PDF, PostScript and RTF write other data as digits, which their readers know. */
const otherText = /^(?:%PDF-|%!|\{\\rt)/

/** Reads bytes that text writes as hexadecimal digits, as a dump of xxd, hexdump or od, or as escapes in a string. */
export const hexTextReader: Reader = {
  name: 'hexadecimal text',
  recognizes: (source) => {
    const head = source.read(0, firstBytes)
    return countControls(head) <= maxControls && !otherText.test(head.toString('latin1'))
  },
  read: async (source, members) => readHexText(source, members),
}

async function readHexText(source: Source, members: Members): Promise<Reading> {
  const textEnd = findTextEnd(source)
  const end = countControls(source.read(0, headBytes)) <= maxControlsOfHead ? source.bytes : textEnd
  const hasData = await giveEncoded(members, '[further digits]', () => listEncoded(source, end))
  return { accounted: hasData ? accountForText(textEnd) : [], doubts: [] }
}

function* listEncoded(source: Source, end: number): Generator<EncodedData> {
  for (const run of listHexRuns(source, end))
    yield { path: `[${run.kind} at ${getStart(run)}]`, decode: () => decodeHexRun(source, run) }
}

const getStart = ({ ranges: [first] }: HexRun) => first?.start ?? 0

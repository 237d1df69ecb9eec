import { isHash, longestHash } from '../../../../domain/content/base64-text.ts'
import { canHoldContent } from '../../../../domain/content/container.ts'
import { isOrdinaryKey } from '../../../../domain/content/keys.ts'
import { isMailHead } from '../../../../domain/content/mail-head.ts'
import type { Members, Reader, Reading } from '../reader.ts'
import { listPieces, type Source } from '../source.ts'
import { listBase32 } from './base32-runs.ts'
import { listShortLineRuns } from './base64-lines.ts'
import { type Base64Run, listBase64Runs } from './base64-runs.ts'
import { type EncodedData, giveEncoded } from './encoded-members.ts'
import { accountForText, findControl, findTextEnd } from './text-end.ts'
import { countControls } from './text-lines.ts'
import { decodeBase64 } from './transfer-encodings.ts'

/** Text that carries bytes behind it may be short. */
const firstBytes = 32
/** Control characters that are damage: programs that decode base64 pass over them. */
const maxControls = 2
const headBytes = 65_536
const maxControlsOfHead = 16
const maxKeyChars = 65_536

/** Reads base64 and base32 in program text, markup and data: in quotes, over several lines, or as a data address. */
export const base64TextReader: Reader = {
  name: 'base64 and base32 in text',
  recognizes: (source) => {
    const head = source.read(0, headBytes)
    const isText = countControls(head.subarray(0, firstBytes)) <= maxControls
    if (!isText || otherText.test(head.toString('latin1', 0, 16))) return false
    return !isMailHead(head)
  },
  read: async (source, members) => readBase64Text(source, members),
}

/** PDF and RTF have base64 only by chance. Mail has a reader that knows where base64 begins and ends. */
const otherText = /^(?:%PDF-|\{\\rt)/

async function readBase64Text(source: Source, members: Members): Promise<Reading> {
  const textEnd = findTextEnd(source)
  const isDamagedText = countControls(source.read(0, headBytes)) <= maxControlsOfHead
  // Programs decode a damaged line up to the damage.
  const end = isDamagedText ? source.bytes : findControl(source, textEnd)
  const hasData = await giveEncoded(members, '[further base64]', () => listEncoded(source, end))
  return { accounted: hasData ? accountForText(textEnd) : [], doubts: [] }
}

function* listEncoded(source: Source, end: number): Generator<EncodedData> {
  for (const reading of listReadings(source, end)) {
    yield {
      path: `[${reading.name} at ${getStart(reading.run)}]`,
      decode: reading.decode,
      isLeftOut: () => [isHashRun, isArmoured, isKey, isPartOfContainer].some((isOther) => isOther(source, reading)),
    }
  }
}

type RunReading = { name: string; run: Base64Run; decode(): Generator<Buffer> }

/** The readings of each run: as base64, and in the alphabets of base32. */
function* listReadings(source: Source, end: number): Generator<RunReading> {
  for (const run of listRuns(source, end)) {
    if (run.isBase64) yield { name: 'base64', run, decode: () => decodeRun(source, run) }
    for (const decode of listBase32(source, run)) yield { name: 'base32', run, decode }
  }
}

function* listRuns(source: Source, end: number): Generator<Base64Run> {
  yield* listBase64Runs(source, end)
  yield* listShortLineRuns(source, end)
}

const getStart = ({ ranges: [first] }: Base64Run) => first?.start ?? 0

function isHashRun(source: Source, { run: { ranges, chars } }: RunReading): boolean {
  const [first] = ranges
  if (first === undefined || chars > longestHash) return false
  return isHash(source.read(first.start, first.start + chars), 0, chars)
}

/** The armour of signed and encrypted content. Other labels say nothing: some programs decode what follows any. */
const armourLabel = /^-----BEGIN (?:PGP |AGE |CMS-|PKCS7-)/
/** Headers of armour between its first line and its data. */
const maxHeaderBytes = 1024

/** Whether the run is the data of an armour, whose own reader knows where the data begins and ends. */
function isArmoured(source: Source, { run }: RunReading): boolean {
  const start = getStart(run)
  const before = source.read(start - maxHeaderBytes, start).toString('latin1')
  const begin = before.lastIndexOf('-----BEGIN ')
  return armourLabel.test(before.slice(begin)) && !before.includes('-----END ', begin)
}

/** Keys and certificates hold no other content, and programs carry many of them. */
function isKey(_source: Source, { run, decode }: RunReading): boolean {
  return run.chars <= maxKeyChars && isOrdinaryKey(Buffer.concat([...decode()]))
}

/** The start of a run that begins as a container is not given alone: the whole run begins so, too, and is given. */
function isPartOfContainer(_source: Source, { run, decode }: RunReading): boolean {
  const [head] = run.isStart === true ? decode() : []
  return head !== undefined && canHoldContent(head)
}

/** Decodes a run, in the alphabet for addresses, too. */
const decodeRun = (source: Source, { ranges }: Base64Run): Generator<Buffer> =>
  decodeBase64(listPieces(source, ranges), { onJunk: 'skip', onPad: 'stop', isUrlSafe: true })

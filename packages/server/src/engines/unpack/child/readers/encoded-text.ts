import type { Doubt } from '../../../../domain/ports/engines.ts'
import type { Members, Reader, Reading, Source } from '../reader.ts'
import { hasHereDocuments, listHereDocuments } from './shell-text.ts'
import {
  accountForText,
  beginsAsText,
  countControls,
  cutText,
  findLineEnd,
  findTextEnd,
  listLines,
  listMatches,
  readLine,
} from './text-lines.ts'
import { decodeBase64, listBase64Rules } from './transfer-encodings.ts'
import { decodeUu, decodeYenc, findUuData, findYencEnd, listUuRules } from './uuencode.ts'

const headBytes = 65_536
const maxBlocks = 10_000
const longestMark = 64

/** Reads uuencode and yEnc wherever their first line stands in text, and what shell scripts carry. */
export const encodedTextReader: Reader = {
  name: 'encoded text',
  recognizes: (source) => {
    const script = readScript(source)
    return hasHereDocuments(script) || readsOwnText(script) || !findMarks(source).next().done
  },
  read: readEncodedText,
}

/** Controls in the head of a script. Shells run one that a few damaged bytes stand in; programs have far more. */
const maxControlShare = 0.01
const maxControls = 16

/** The head as far as it may be a script: up to the first line with controls, unless they are few. */
function readScript(source: Source): Buffer {
  const head = source.read(0, headBytes)
  const script = cutText(head)
  if (script.length === head.length) return head
  const limit = Math.max(head.length * maxControlShare, startsAsScript(head) ? maxControls : 0)
  return countControls(head) <= limit ? head : script
}

const startsAsScript = (head: Buffer) => head[0] === 0x23 && head[1] === 0x21

/**
 * The first line of encoded data. `begin` is followed by the rights and the name of the file, or by both in one word.
 * Programs take any word for the rights: the lines behind it tell whether it is encoded data.
 */
const marks = /(?<=^|[\r\n])(?:begin(?:-base64|-encoded){0,2}[ \t]+\S|=ybegin )/g

const findMarks = (source: Source) => listMatches(source, marks, longestMark)

async function readEncodedText(source: Source, members: Members): Promise<Reading> {
  const doubts = new Set<Doubt>()
  let count = 0
  let end = 0
  for (const at of findMarks(source)) {
    if (at < end) continue
    const block = openBlock(source, at)
    if (block === undefined) continue
    if (++count > maxBlocks) {
      doubts.add('ScanLimitExceeded')
      break
    }
    for (const pieces of block.readings) await members.give({ path: block.path, pieces })
    end = block.end
  }
  const script = readScript(source)
  if (hasHereDocuments(script)) {
    for (const { path, pieces } of listHereDocuments(source)) {
      count++
      await members.give({ path, pieces })
    }
  }
  const textEnd = findTextEnd(source)
  for (const start of readsOwnText(script) ? findTails(source, textEnd) : []) {
    count++
    await members.give({ path: `[bytes ${start} to ${source.bytes}]`, pieces: source.pieces(start, source.bytes) })
  }
  // Content that does not begin as text may be a container as well: nothing of it is accounted for, so that it is
  // searched for one.
  return { accounted: count > 0 && beginsAsText(source) ? accountForText(textEnd) : [], doubts: [...doubts] }
}

type Block = { path: string; readings: Iterable<Buffer>[]; end: number }

function openBlock(source: Source, at: number): Block | undefined {
  const line = readLine(source, at, source.bytes)
  const lineEnd = findLineEnd(source, at)
  const found = source.find(Buffer.from([lineEnd]), at + line.length)
  const start = found === -1 ? source.bytes : found + 1
  if (line.startsWith('=ybegin')) {
    const end = findYencEnd(source, start)
    const path = / name=(.*)$/.exec(line)?.[1]?.trim() || '[yEnc]'
    return { path, readings: [decodeYenc(source, start, end)], end }
  }
  const path = /^\S+[ \t]+\S+[ \t]+(.*)$/.exec(line)?.[1]?.trim() || '[uuencode]'
  if (/^begin\S*-base64/.test(line)) {
    const mark = source.find(base64End, start)
    const end = mark === -1 ? source.bytes : mark
    const rules = listBase64Rules(source.pieces(start, end))
    return { path, readings: rules.map((rule) => decodeBase64(source.pieces(start, end), rule)), end }
  }
  const data = findUuData(source, start)
  if (!data.hasData && !data.hasXx) return undefined
  const readings = listUuRules(data).map((rule) => decodeUu(source, data, rule))
  return { path, readings, end: data.end }
}

const base64End = Buffer.from('====')

/** Scripts name one place; the others are words that look like one. */
const maxTails = 8
/** A script that is longer does not carry text behind its end: what it carries was given from its first binary line. */
const maxTextBytes = 16 * 2 ** 20
/** The tail begins at most so far before the first line with control characters. */
const maxTextBefore = 4096

/** Programs that read a part of a file, followed by the name of the script itself. */
const ownText = /\b(?:tail|sed|g?awk|dd|perl|cut|more|findstr)\b[^\n]{0,200}(?:\$\{?0\b|BASH_SOURCE|%~f?0)/
const makeself = /^skip="?\d/m

/** Whether the head is that of a script which reads data behind its own end. */
const readsOwnText = (head: Buffer): boolean => {
  const text = head.toString('latin1')
  return ownText.test(text) || (text.includes('Makeself') && makeself.test(text))
}

/** The places from which a script may read its own text: by the number of a line, behind a mark, or behind its last command. */
function findTails(source: Source, textEnd: number): number[] {
  const numbers = listLineNumbers(source)
  const tails = new Set<number>()
  let number = 0
  for (const line of listLines(source, 0, textEnd)) {
    number++
    if (numbers.has(number)) tails.add(line.start)
    if (line.bytes.length <= 64 && endsScript.test(line.bytes.toString('latin1'))) tails.add(line.next)
  }
  // A tail that begins with the binary line is given as the rest of the content.
  const isCarrying = textEnd < source.bytes
  return [...tails]
    .filter(
      (at) => at > 0 && at < textEnd && (isCarrying ? textEnd - at <= maxTextBefore : source.bytes <= maxTextBytes),
    )
    .slice(-maxTails)
}

/** A mark such as `__ARCHIVE__`, or the end of the commands. */
const endsScript = /^(?:[#:]{0,3}[ \t]*_{1,4}\w{2,40}:?|exit(?:[ \t]+\S+)?;?)[ \t]*$/

const lineNumbers = /\btail[ \t]+(?:-n[ \t]*|--lines=)?\+(\d{1,7})|\bsed\b[^\n]{0,20}\b1,(\d{1,7})d|^skip="?(\d{1,7})/gm

/** The numbers of the lines at which data may begin. */
function listLineNumbers(source: Source): Set<number> {
  const text = source.read(0, headBytes).toString('latin1')
  const numbers = new Set<number>()
  for (const [, tail, sed, skip] of text.matchAll(lineNumbers)) {
    if (tail !== undefined) numbers.add(Number(tail))
    else numbers.add(Number(sed ?? skip) + 1)
  }
  return numbers
}

import type { Source } from '../source.ts'
import { listLines } from './text-lines.ts'

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
export const readsOwnText = (head: Buffer): boolean => {
  const text = head.toString('latin1')
  return ownText.test(text) || (text.includes('Makeself') && makeself.test(text))
}

/** The places from which a script may read its own text: by the number of a line, behind a mark, or behind its last command. */
export function findTails(source: Source, textEnd: number): number[] {
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

const headBytes = 65_536
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

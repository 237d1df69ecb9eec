/** Removes the start of a line, as a program does that writes a here-document. */
type LineChange = (line: Buffer) => Buffer

const lineFeed = 0x0a
/** Characters that are removed where the command does not tell which. */
const maxGuessed = 4
const changers = /\b(?:sed|g?awk|cut|colrm|perl|python\d?|ruby)\b/
/** `s/^X//` with any delimiter. */
const substitution = /\bs([^\w\s\\])\^((?:\\.|(?!\1)[^\\]){1,200})\1/g
/** Characters that stand for others in a pattern. */
const special = /[[\].*+?$^\\(){}|]/
/** The first character that stays, as options of cut and functions of awk name it. */
const positions = /\bcut\b[^|\n]{0,40}?-[bc][ \t]*["']?(\d{1,3})-|\bsubstr\([ \t]*\$0[ \t]*,[ \t]*(\d{1,3})/g

/** The ways in which the programs of a command shorten lines; none when the command writes them as they are. */
export function listLineChanges(command: string, head: string): LineChange[] {
  if (!changers.test(command)) return []
  const prefixes = new Set<string>()
  const lengths = new Set<number>()
  for (const [, , pattern = ''] of command.matchAll(substitution)) {
    if (special.test(pattern)) for (let length = 1; length <= maxGuessed; length++) lengths.add(length)
    else prefixes.add(pattern)
  }
  for (const [, column, character] of command.matchAll(positions)) lengths.add(Number(column ?? character) - 1)
  if (prefixes.size + lengths.size === 0) {
    for (let length = 1; length <= maxGuessed; length++) prefixes.add(head.slice(0, length))
  }
  return [...[...prefixes].map(removePrefix), ...[...lengths].filter((length) => length > 0).map(removeStart)]
}

function removePrefix(prefix: string): LineChange {
  const mark = Buffer.from(prefix, 'latin1')
  return (line) => (line.subarray(0, mark.length).equals(mark) ? line.subarray(mark.length) : line)
}

const removeStart =
  (length: number): LineChange =>
  (line) =>
    line.length > length ? line.subarray(length) : line.at(-1) === lineFeed ? line.subarray(-1) : empty

const empty = Buffer.alloc(0)

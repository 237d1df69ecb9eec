import { findGitHeader, isGitStream } from '../../../../domain/content/git-formats.ts'
import type { Members, Reader, Reading } from '../reader.ts'
import type { Source } from '../source.ts'

const headBytes = 1024

/** Reads objects of Git, whose header stands in front of the content that zlib held. */
export const gitObjectReader: Reader = {
  name: 'Git objects',
  recognizes: (source) => findGitHeader(source.read(0, headBytes)) > 0,
  async read(source, members) {
    const start = findGitHeader(source.read(0, headBytes))
    await members.give({ path: '', pieces: source.pieces(start, source.bytes) })
    return { accounted: [{ start: 0, end: source.bytes }], doubts: [] }
  },
}

/** Reads the streams of `git fast-export`, in which files and messages stand behind their length or before a last line. */
export const gitStreamReader: Reader = {
  name: 'Git streams',
  recognizes: (source) => isGitStream(source.read(0, headBytes)),
  read: async (source, members) => readStream(source, members),
}

const command = Buffer.from('\ndata ')
const maxCommandBytes = 300
/** A message is text, which was scanned with the stream. A file may be of any length. */
const isMessage = /(?:^|\n)(?:author|committer|tagger) [^\n]*\n(?:(?:encoding|gpgsig) [^\n]*\n)*$/
const maxBefore = 600

async function readStream(source: Source, members: Members): Promise<Reading> {
  for (let at = source.find(command, 0); at !== -1; ) {
    const line = source.read(at + 1, at + maxCommandBytes).toString('latin1')
    const [begin = '', length, word] = /^data (?:(\d{1,15})|<<([^\n]{1,250}))\n/.exec(line) ?? []
    const start = at + 1 + begin.length
    let end = start
    if (length !== undefined) end = start + Number(length)
    if (word !== undefined) end = findWord(source, word, start)
    const before = source.read(Math.max(0, at - maxBefore), at + 1).toString('latin1')
    if (end > start && !isMessage.test(before))
      await members.give({ path: `[data at ${start}]`, pieces: source.pieces(start, end) })
    // A command may follow its line end at once.
    at = source.find(command, Math.max(at + 1, end - 1))
  }
  return { accounted: [{ start: 0, end: source.bytes }], doubts: [] }
}

/** The start of the line that ends the data. */
function findWord(source: Source, word: string, from: number): number {
  const found = source.find(Buffer.from(`\n${word}\n`, 'latin1'), from - 1)
  return found === -1 ? source.bytes : found + 1
}

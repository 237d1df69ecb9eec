import { findGitHeader, isGitStream } from '../../../../domain/content/archive-formats.ts'
import { decompress } from '../inflate.ts'
import type { Members, Reader, Reading, Source } from '../reader.ts'
import { listLines } from './text-lines.ts'

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
  read: readStream,
}

const dataCommand = Buffer.from('\ndata ')
const maxCommandBytes = 300
/** A message is text, which was scanned with the stream. A file may be of any length. */
const messageHead = /(?:^|\n)(?:author|committer|tagger) [^\n]*\n(?:(?:encoding|gpgsig) [^\n]*\n)*$/
const maxMessageHeadBytes = 600

async function readStream(source: Source, members: Members): Promise<Reading> {
  for (let at = source.find(dataCommand, 0); at !== -1; ) {
    const line = source.read(at + 1, at + maxCommandBytes).toString('latin1')
    const [begin = '', length, word] = /^data (?:(\d{1,15})|<<([^\n]{1,250}))\n/.exec(line) ?? []
    const start = at + 1 + begin.length
    let end = start
    if (length !== undefined) end = start + Number(length)
    if (word !== undefined) end = findWord(source, word, start)
    const before = source.read(Math.max(0, at - maxMessageHeadBytes), at + 1).toString('latin1')
    if (end > start && !messageHead.test(before))
      await members.give({ path: `[data at ${start}]`, pieces: source.pieces(start, end) })
    // A command may follow its line end at once.
    at = source.find(dataCommand, Math.max(at + 1, end - 1))
  }
  return { accounted: [{ start: 0, end: source.bytes }], doubts: [] }
}

/** The start of the line that ends the data. */
function findWord(source: Source, word: string, from: number): number {
  const found = source.find(Buffer.from(`\n${word}\n`, 'latin1'), from - 1)
  return found === -1 ? source.bytes : found + 1
}

/** Binary data in a patch of Git: base85 of a zlib stream, of the whole file or of the difference to another. */
export type GitBinary = { isDelta: boolean; start: number; end: number }

const base85Values = new Uint8Array(256).fill(255)
for (const [value, char] of [
  ...'0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz!#$%&()*+-;<=>?@^_`{|}~',
].entries())
  base85Values[char.charCodeAt(0)] = value

const dataHead = /^[ \t]*(literal|delta) \d+$/
const maxDataHeadChars = 100

/** Finds the data behind the line `GIT binary patch` at a position: of the file, and of the file before. */
export function* listGitBinary(source: Source, from: number): Generator<GitBinary> {
  let open: GitBinary | undefined
  let isFirst = true
  for (const line of listLines(source, from, source.bytes)) {
    if (isFirst) {
      isFirst = false
      continue
    }
    const found = dataHead.exec(line.bytes.toString('latin1', 0, maxDataHeadChars))
    if (found !== null) {
      if (open !== undefined) yield open
      open = { isDelta: found[1] === 'delta', start: line.next, end: line.next }
    } else if (open !== undefined && decodeLine(line.bytes) !== undefined) open.end = line.next
    else if (line.bytes.toString('latin1', 0, maxDataHeadChars).trim() !== '') break
  }
  if (open !== undefined) yield open
}

const maxLineChars = 200

/** Decodes a line: a letter for the number of its bytes, and five characters for each four of them. */
function decodeLine(line: Buffer): Buffer | undefined {
  if (line.length > maxLineChars) return undefined
  const [letter = '', digits = ''] = /^([A-Za-z])([^\s]*)$/.exec(line.toString('latin1').trim())?.slice(1) ?? []
  const code = letter.charCodeAt(0)
  const length = code >= 0x61 ? code - 0x61 + 27 : code - 0x41 + 1
  if (letter === '' || digits.length !== Math.ceil(length / 4) * 5) return undefined
  const out = Buffer.alloc((digits.length / 5) * 4)
  for (let group = 0; group * 5 < digits.length; group++) {
    let bits = 0
    for (let i = 0; i < 5; i++) {
      const value = base85Values[digits.charCodeAt(group * 5 + i)] ?? 255
      if (value === 255) return undefined
      bits = bits * 85 + value
    }
    if (bits > 0xffff_ffff) return undefined
    out.writeUInt32BE(bits, group * 4)
  }
  return out.subarray(0, length)
}

/** Decompresses the data. Of a difference only the bytes are given that it adds to the other file. */
export async function* decodeGitBinary(source: Source, { isDelta, start, end }: GitBinary): AsyncGenerator<Buffer> {
  const { pieces } = decompress('zlib', listBytes(source, start, end))
  try {
    yield* isDelta ? listAdded(pieces) : pieces
  } catch {
    // Data that is damaged is given up to the damage.
  }
}

function* listBytes(source: Source, start: number, end: number): Generator<Buffer> {
  for (const { bytes } of listLines(source, start, end)) {
    const decoded = decodeLine(bytes)
    if (decoded !== undefined) yield decoded
  }
}

/** Yields what a difference inserts: behind two lengths stand copies of parts of the other file, and bytes. */
async function* listAdded(pieces: AsyncIterable<Buffer>): AsyncGenerator<Buffer> {
  let lengths = 2
  /** Bytes of a copy that follow its first one, and bytes to insert that follow at once. */
  let [skip, insert] = [0, 0]
  for await (const piece of pieces) {
    for (let at = 0; at < piece.length; ) {
      if (insert > 0) {
        yield piece.subarray(at, at + insert)
        const taken = Math.min(insert, piece.length - at)
        insert -= taken
        at += taken
        continue
      }
      const byte = piece[at++] as number
      if (lengths > 0) lengths -= byte < 0x80 ? 1 : 0
      else if (skip > 0) skip--
      else if (byte < 0x80) insert = byte
      else for (let bit = 0; bit < 7; bit++) skip += (byte >> bit) & 1
    }
  }
}

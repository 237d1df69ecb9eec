import { canHoldContent } from '../../../domain/content/container.ts'
import { headBytes } from '../../../domain/content/content.ts'
import { isText, newEncodedSearch } from '../../../domain/content/encoded-text.ts'
import type { ChildPipe } from '../../child-process/child-pipe.ts'
import type { Job, JobAnswer } from '../unpack-job.ts'
import { isPlainText } from './plain-text.ts'
import type { Members } from './reader.ts'

export type Pipe = Pick<ChildPipe<Job, JobAnswer>, 'send' | 'fetch'>

const pieceBytes = 2 ** 20
const maxPathBytes = 4096
/** Text of a member that is kept until it is known whether it has base64. Longer text is scanned again. */
const maxTextBytes = 64 * 2 ** 20
const text = new TextEncoder()

/** Opens a member at the service, which takes members one after the other. */
export function openMember(pipe: Pipe, path: string) {
  pipe.send('open', text.encode(path).subarray(0, maxPathBytes))
  return {
    write(bytes: Uint8Array) {
      for (let at = 0; at < bytes.length; at += pieceBytes) pipe.send('data', bytes.subarray(at, at + pieceBytes))
    },
    end: () => pipe.send('end', empty),
  }
}

/** Sends the members that readers give to the service, without those that ClamAV has scanned and that hold nothing. */
export function openMembers(pipe: Pipe, { seen }: Pick<Job, 'seen'>): Members {
  return {
    async give({ path, pieces, isSeen = false }) {
      const reading = readOn(pieces)
      const start = isSeen && seen !== 'give' ? await readStart(reading) : undefined
      if (start === undefined || start.mayHold) await send(path, start?.read ?? [], reading)
    },
  }

  /** Reads a member until it is known whether it may hold content. One that is no text is read to the end of its head. */
  async function readStart(pieces: AsyncGenerator<Uint8Array>): Promise<{ read: Buffer[]; mayHold: boolean }> {
    const head = await readUpTo(headBytes, pieces)
    const read = [head]
    const isWhole = head.length < headBytes
    // A member that is longer was not read to its end, so that its text is not known to be plain.
    const isPlain = seen !== 'search' || (isWhole && isPlainText(head))
    if (canHoldContent(head) || !isPlain) return { read, mayHold: true }
    if (!isText(head)) return { read, mayHold: false }
    const search = newEncodedSearch()
    let bytes = 0
    for (let last = head; last.length > 0; last = await readUpTo(pieceBytes, pieces)) {
      if (bytes > 0) read.push(last)
      bytes += last.length
      if (search.take(last) || bytes > maxTextBytes) return { read, mayHold: true }
    }
    return { read, mayHold: false }
  }

  async function send(path: string, read: Uint8Array[], rest: AsyncIterable<Uint8Array>) {
    const member = openMember(pipe, path)
    try {
      for (const piece of read) member.write(piece)
      for await (const piece of rest) member.write(piece)
    } finally {
      member.end()
    }
  }
}

const empty = Buffer.alloc(0)

/** An iterator that a reader may leave and continue later. */
async function* readOn(pieces: Iterable<Uint8Array> | AsyncIterable<Uint8Array>): AsyncGenerator<Uint8Array> {
  yield* pieces
}

/** Reads pieces until they have as many bytes, or to the end. */
async function readUpTo(wanted: number, pieces: AsyncGenerator<Uint8Array>): Promise<Buffer> {
  const read: Uint8Array[] = []
  for (let bytes = 0; bytes < wanted; ) {
    const { value, done } = await pieces.next()
    if (done === true) break
    read.push(value)
    bytes += value.length
  }
  return Buffer.concat(read)
}

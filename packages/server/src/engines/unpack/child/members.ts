import { canHoldContent } from '../../../domain/content/container.ts'
import { headBytes } from '../../../domain/content/content.ts'
import type { ChildPipe } from '../../child-process/child-pipe.ts'
import type { Job, JobAnswer } from '../unpack-job.ts'
import { isPlainText } from './plain-text.ts'
import type { Members } from './reader.ts'

export type Pipe = Pick<ChildPipe<Job, JobAnswer>, 'send' | 'fetch'>

const pieceBytes = 2 ** 20
const maxPathBytes = 4096
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
      const head = isSeen && seen !== 'give' ? await readHead(reading) : undefined
      if (head === undefined || holdsContent(head)) await send(path, head ?? empty, reading)
    },
  }

  /** A member that is longer than a head was not read to its end, so that its text is not known to be plain. */
  function holdsContent(head: Buffer): boolean {
    return canHoldContent(head) || (seen === 'search' && (head.length >= headBytes || !isPlainText(head)))
  }

  async function send(path: string, head: Uint8Array, rest: AsyncIterable<Uint8Array>) {
    const member = openMember(pipe, path)
    try {
      member.write(head)
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

async function readHead(pieces: AsyncGenerator<Uint8Array>): Promise<Buffer> {
  const read: Uint8Array[] = []
  for (let bytes = 0; bytes < headBytes; ) {
    const { value, done } = await pieces.next()
    if (done === true) break
    read.push(value)
    bytes += value.length
  }
  return Buffer.concat(read)
}

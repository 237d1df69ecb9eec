import { canHoldContent } from '../../../domain/content/container.ts'
import { headBytes } from '../../../domain/content/content.ts'
import { binHexChar } from '../../../domain/content/document-formats.ts'
import { isText, newEncodedSearch } from '../../../domain/content/encoded-text.ts'
import type { ChildPipe } from '../../child-process/child-pipe.ts'
import type { Job, JobAnswer } from '../unpack-job.ts'
import type { Members } from './reader.ts'
import { byteEscape } from './readers/hex-text.ts'

export type Pipe = Pick<ChildPipe<Job, JobAnswer>, 'send' | 'fetch'>

const pieceBytes = 2 ** 20
const maxPathBytes = 4096
/** Text of a member that is kept until it is known whether it has base64. Longer text is scanned again. */
const maxTextBytes = 64 * 2 ** 20
const encoder = new TextEncoder()

/** Opens a member at the service, which takes members one after the other. */
export function openMember(pipe: Pipe, path: string) {
  pipe.send('open', encoder.encode(path).subarray(0, maxPathBytes))
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

/** Bytes that text does not have. Signatures of binary containers have at least one of them. */
const controls = /[\0-\x08\x0b\x0e-\x1f]/

/** Texts in which a container may begin, or by which a script writes a file. */
const markSources = [
  'BZh[1-9]1AY&SY',
  'ustar[ 0]',
  '!<arch>',
  'SIT![^]{6}rLau',
  'FAT[0-9]{2} {3}',
  '\\x28\\xb5\\x2f\\xfd',
  '\\xef\\xbe\\xad\\xdeNullsoftInst',
  '%PDF-',
  'BinHex',
  `[\\n\\r][ \\t]{0,16}:${binHexChar}{32}`,
  'content-transfer-encoding:',
  'content-type: multipart/',
  'begin-(?:base64|encoded)',
  '[\\n\\r]begin ',
  '=ybegin ',
  '-----BEGIN ',
  'manifest:encryption-data',
  'uudecode',
  'SHAR_E',
  's/\\^X//',
  '(?:cat|tee|sed|awk|cut|xxd)[^]{0,80}<<',
  '^#![^]*<<',
  'tail[^]{0,80}\\$0',
  '(?:sed|awk|dd) [^]{0,80}"\\$0"',
  'Makeself',
  '__HALT_COMPILER\\(\\);',
]
const marks = new RegExp(markSources.join('|'), 'i')
/** Bytes that a string writes as escapes. */
const escapes = new RegExp(`(?:${byteEscape}){8}`, 'i')

/**
 * Whether content is text in which no reader finds other content, but for the data that `newEncodedSearch` finds. Assay's
 * signatures for ClamAV (assay.ldb) mark the same texts, but ClamAV does not tell in which member of an archive.
 */
export function isPlainText(bytes: Buffer): boolean {
  const text = bytes.toString('latin1')
  return !controls.test(text) && !marks.test(text) && !escapes.test(text)
}

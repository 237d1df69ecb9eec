import { maxHeaderBytes } from '@assay/contract'
import { type Encapsulated, IcapFault, type Layout } from './icap-message.ts'

/** A parsed head of a request or a response. */
type Head = {
  layout: Layout
  /** Bytes of the body that the sender sends before it waits; undefined if it sends all of it. */
  preview: number | undefined
}

export type IcapEvent<H extends Head> =
  | { kind: 'head'; head: H; headers: Encapsulated }
  | { kind: 'content'; bytes: Buffer }
  /** The preview ended before the body did. Call `continueAfterPreview` for the rest; else the next message follows. */
  | { kind: 'preview-end' }
  /** `inPreview`: the whole body was in the preview, so the client accepts 204 as the response. */
  | { kind: 'end'; inPreview: boolean }

const emptyBuffer: Buffer = Buffer.alloc(0)
const headEnd = Buffer.from('\r\n\r\n')
/** Limit on empty lines before a message: some clients send an additional line end after a body. */
const maxBlankBytes = 64

/**
 * Parses a stream of requests or of responses. `parseHead` gets the head of each without the empty line at its end.
 * Throws an IcapFault for bytes that are not a valid message.
 */
export function newIcapParser<H extends Head>(parseHead: (text: string) => H) {
  let unread = emptyBuffer
  let head: H | undefined
  let body: ReturnType<typeof newChunkReader> | undefined
  let isPreview = false
  let blankBytes = 0
  let canContinue = false

  return {
    /** Yields the events of a chunk. It parses on only after the caller has handled the events so far. */
    *push(chunk: Buffer): Generator<IcapEvent<H>> {
      let rest = unread.length === 0 ? chunk : Buffer.concat([unread, chunk])
      unread = emptyBuffer
      while (rest.length > 0) {
        const step = body !== undefined ? takeBody(rest) : head !== undefined ? takeSections(rest) : takeHead(rest)
        if (step === undefined) break
        rest = step.rest
        yield* step.events
      }
      // The rest is copied, because receivers of content events may keep the memory of the chunk.
      unread = rest.length === 0 ? emptyBuffer : Buffer.from(rest)
    },
    /** Whether there are bytes of a message that has not arrived as a whole. */
    hasUnparsed: () => unread.length > 0 || head !== undefined || body !== undefined,
    /** Tells the parser that the rest of the body follows the preview. */
    continueAfterPreview() {
      if (!canContinue) throw new Error('There is no preview to continue')
      canContinue = false
      body = newChunkReader()
    },
  }

  type Step = { events: IcapEvent<H>[]; rest: Buffer } | undefined

  function takeHead(bytes: Buffer): Step {
    canContinue = false
    if (bytes[0] === 13 || bytes[0] === 10) {
      blankBytes++
      if (blankBytes > maxBlankBytes) throw new IcapFault(400, 'The first line is missing.')
      return { events: [], rest: bytes.subarray(1) }
    }
    const at = bytes.indexOf(headEnd)
    if (at > maxHeaderBytes || (at === -1 && bytes.length > maxHeaderBytes)) {
      throw new IcapFault(400, `The header is longer than ${maxHeaderBytes} bytes.`)
    }
    if (at === -1) return undefined
    blankBytes = 0
    head = parseHead(bytes.toString('latin1', 0, at))
    const rest = bytes.subarray(at + headEnd.length)
    // A message without sections is complete here: no further byte may ever arrive.
    return head.layout.headers.length === 0 ? beginMessage(head, {}, rest) : { events: [], rest }
  }

  function takeSections(bytes: Buffer): Step {
    const current = head as H
    const total = current.layout.headers.reduce((sum, section) => sum + section.bytes, 0)
    if (bytes.length < total) return undefined
    const headers = cutSections(bytes, current.layout)
    return beginMessage(current, headers, bytes.subarray(total))
  }

  function beginMessage(current: H, headers: Encapsulated, rest: Buffer): Step {
    const headEvent: IcapEvent<H> = { kind: 'head', head: current, headers }
    head = undefined
    if (current.layout.body === 'null-body') {
      return { events: [headEvent, { kind: 'end', inPreview: current.preview !== undefined }], rest }
    }
    body = newChunkReader(current.preview)
    isPreview = current.preview !== undefined
    return { events: [headEvent], rest }
  }

  function takeBody(bytes: Buffer): Step {
    const step = body?.take(bytes)
    if (step === undefined) return undefined
    const { event, rest } = step
    if (event === undefined) return { events: [], rest }
    if (event.kind === 'content') return { events: [event], rest }
    body = undefined
    const inPreview = isPreview
    isPreview = false
    if (inPreview && !event.isWhole) {
      canContinue = true
      return { events: [{ kind: 'preview-end' }], rest }
    }
    return { events: [{ kind: 'end', inPreview }], rest }
  }
}

/** The header sections, which may have to be sent back unchanged, so each must end exactly at the given offset. */
function cutSections(bytes: Buffer, { headers: sections }: Layout): Encapsulated {
  const headers: Encapsulated = {}
  let start = 0
  for (const section of sections) {
    const part = Buffer.from(bytes.subarray(start, start + section.bytes))
    if (part.indexOf(headEnd) !== part.length - headEnd.length) {
      throw new IcapFault(400, `The section ${section.name} does not end where Encapsulated says.`)
    }
    headers[section.name] = part
    start += section.bytes
  }
  return headers
}

type BodyEvent =
  | { kind: 'content'; bytes: Buffer }
  /** `isWhole`: the client says that the preview contained the whole body. */
  | { kind: 'body-end'; isWhole: boolean }

const maxLineBytes = 1024
const maxTrailerBytes = 8 * 1024

/**
 * Reads a chunked body. `take` returns an event and the unread bytes, or undefined when it needs more bytes. It keeps
 * its position between calls but no bytes: the caller passes unread bytes again. `maxBytes` limits a preview.
 */
function newChunkReader(maxBytes = Number.POSITIVE_INFINITY) {
  let state: 'size' | 'content' | 'content-end' | 'trailer' = 'size'
  let remainingBytes = 0
  let total = 0
  let trailerBytes = 0
  let isWhole = false

  return {
    take(bytes: Buffer): { event: BodyEvent | undefined; rest: Buffer } | undefined {
      if (state === 'content') {
        const part = bytes.subarray(0, remainingBytes)
        remainingBytes -= part.length
        if (remainingBytes === 0) state = 'content-end'
        return { event: { kind: 'content', bytes: part }, rest: bytes.subarray(part.length) }
      }
      if (state === 'content-end') {
        if (bytes.length < 2) return undefined
        if (bytes[0] !== 13 || bytes[1] !== 10) throw new IcapFault(400, 'A chunk is longer than its size.')
        state = 'size'
        return { event: undefined, rest: bytes.subarray(2) }
      }
      const at = bytes.indexOf('\r\n')
      if (at > maxLineBytes || (at === -1 && bytes.length > maxLineBytes)) {
        throw new IcapFault(400, 'A line of the chunked body is too long.')
      }
      if (at === -1) return undefined
      const rest = bytes.subarray(at + 2)
      if (state === 'size') {
        readSize(bytes.toString('latin1', 0, at))
        return { event: undefined, rest }
      }
      trailerBytes += at + 2
      if (trailerBytes > maxTrailerBytes) throw new IcapFault(400, 'The trailer of the body is too long.')
      if (at > 0) return { event: undefined, rest }
      return { event: { kind: 'body-end', isWhole }, rest }
    },
  }

  function readSize(line: string) {
    const [, digits, extensions = ''] = /^([0-9a-f]{1,8})[ \t]*(;.*)?$/i.exec(line) ?? []
    if (digits === undefined) throw new IcapFault(400, 'The size of a chunk is not valid.')
    remainingBytes = Number.parseInt(digits, 16)
    total += remainingBytes
    if (total > maxBytes) throw new IcapFault(400, 'The preview is longer than the Preview header says.')
    state = remainingBytes === 0 ? 'trailer' : 'content'
    isWhole = remainingBytes === 0 && /^;[ \t]*ieof[ \t]*(;|$)/i.test(extensions)
  }
}

import { maxHeaderBytes } from '@assay/contract'
import { newChunkReader } from './chunk-reader.ts'
import { IcapFault } from './fault.ts'
import { type IcapRequest, parseRequest } from './request.ts'

/** The headers of the HTTP message as they came, each with the empty line at its end. */
export type Encapsulated = { 'req-hdr'?: Buffer; 'res-hdr'?: Buffer }

export type IcapEvent =
  | { kind: 'request'; request: IcapRequest; headers: Encapsulated }
  | { kind: 'content'; bytes: Buffer }
  /** There is more, if it is wanted: `applyAdmission`, or else the next request follows. */
  | { kind: 'preview-end' }
  /** `inPreview`: the client still waits for the word that ends a preview, and takes any. */
  | { kind: 'end'; inPreview: boolean }

const nothing: Buffer = Buffer.alloc(0)
const headEnd = Buffer.from('\r\n\r\n')
/** Some clients end a body with a line end too many. */
const maxBlankBytes = 64

/** Reads requests as they come, one after the other. Throws `IcapFault` for what cannot be understood. */
export function newIcapParser() {
  let kept = nothing
  let request: IcapRequest | undefined
  let body: ReturnType<typeof newChunkReader> | undefined
  let isPreview = false
  let blankBytes = 0
  let mayGoOn = false

  return {
    /** Takes up the rest of the chunk only when the events so far were dealt with. */
    *push(chunk: Buffer): Generator<IcapEvent> {
      let rest = kept.length === 0 ? chunk : Buffer.concat([kept, chunk])
      kept = nothing
      while (rest.length > 0) {
        const step = body !== undefined ? takeBody(rest) : request !== undefined ? takeSections(rest) : takeHead(rest)
        if (step === undefined) break
        rest = step.rest
        yield* step.events
      }
      // A copy: the chunk belongs to whoever got the content in it.
      kept = rest.length === 0 ? nothing : Buffer.from(rest)
    },
    /** After the end of a preview: the rest of the body follows. */
    continueAfterPreview() {
      if (!mayGoOn) throw new Error('There is no preview to go on from')
      mayGoOn = false
      body = newChunkReader()
    },
  }

  type Step = { events: IcapEvent[]; rest: Buffer } | undefined

  function takeHead(bytes: Buffer): Step {
    mayGoOn = false
    if (bytes[0] === 13 || bytes[0] === 10) {
      blankBytes++
      if (blankBytes > maxBlankBytes) throw new IcapFault(400, 'There is no request line.')
      return { events: [], rest: bytes.subarray(1) }
    }
    const at = bytes.indexOf(headEnd)
    if (at > maxHeaderBytes || (at === -1 && bytes.length > maxHeaderBytes)) {
      throw new IcapFault(400, `The header is longer than ${maxHeaderBytes} bytes.`)
    }
    if (at === -1) return undefined
    blankBytes = 0
    request = parseRequest(bytes.toString('latin1', 0, at))
    const rest = bytes.subarray(at + headEnd.length)
    // Without any section there may be no more bytes to wait for.
    return request.layout.headers.length === 0 ? beginMessage(request, {}, rest) : { events: [], rest }
  }

  function takeSections(bytes: Buffer): Step {
    const asked = request as IcapRequest
    const total = asked.layout.headers.reduce((sum, section) => sum + section.bytes, 0)
    if (bytes.length < total) return undefined
    const headers: Encapsulated = {}
    let start = 0
    for (const section of asked.layout.headers) {
      const part = Buffer.from(bytes.subarray(start, start + section.bytes))
      // It may have to go back as it came: then its end must be where it says.
      if (part.indexOf(headEnd) !== part.length - headEnd.length) {
        throw new IcapFault(400, `The section ${section.name} does not end where Encapsulated says.`)
      }
      headers[section.name] = part
      start += section.bytes
    }
    return beginMessage(asked, headers, bytes.subarray(total))
  }

  function beginMessage(asked: IcapRequest, headers: Encapsulated, rest: Buffer): Step {
    const begun: IcapEvent = { kind: 'request', request: asked, headers }
    request = undefined
    if (asked.layout.body === 'null-body') {
      return { events: [begun, { kind: 'end', inPreview: asked.preview !== undefined }], rest }
    }
    body = newChunkReader(asked.preview)
    isPreview = asked.preview !== undefined
    return { events: [begun], rest }
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
      mayGoOn = true
      return { events: [{ kind: 'preview-end' }], rest }
    }
    return { events: [{ kind: 'end', inPreview }], rest }
  }
}

import type { Content } from '../../domain/content/content.ts'
import { mostBytes } from '../listener-scan.ts'
import type { Responder } from './icap-response.ts'

/** For each part of this size that was received, one byte is sent back. */
const partBytes = 32 * 1024
/** The most bytes of a file. Their content may be a threat that is found later; a file without its end is of no use. */
const maxOfDownload = Math.ceil(mostBytes / partBytes)
/** The most bytes of other content, which browsers render as it arrives: too few for a script. */
const maxOfOthers = 15

/**
 * Sends the beginning of a message back while its end is still awaited, a byte for every 32 KB. Squid 5 stops reading
 * from the origin server for ever when it has to wait for a response, and goes on after each byte of one.
 */
export function makeTrickle(
  responder: Pick<Responder, 'sendMessageHead' | 'sendPart' | 'sendEnd'>,
  { isDownload, preview }: { isDownload: boolean; preview: number | undefined },
) {
  /** The client reads nothing but 100 or a whole response before the end of its preview. */
  let isInPreview = preview !== undefined
  const maxSent = isDownload ? maxOfDownload : maxOfOthers
  let beginning = Buffer.alloc(0)
  let received = 0
  let sent = 0

  async function sendRest(content: Content) {
    let skipped = 0
    for await (const part of content.read()) {
      const known = Math.min(part.length, sent - skipped)
      skipped += known
      if (known < part.length) await responder.sendPart(part.subarray(known))
    }
  }

  return {
    /** True once a part of the message has left: it can then be completed or broken off, and not be replaced. */
    hasBegun: () => sent > 0,
    endPreview() {
      isInPreview = false
    },
    async receive(chunk: Buffer) {
      if (beginning.length < maxSent)
        beginning = Buffer.concat([beginning, chunk.subarray(0, maxSent - beginning.length)])
      received += chunk.length
      const due = Math.min(Math.floor(received / partBytes), maxSent)
      if (due === sent || isInPreview) return
      if (sent === 0) await responder.sendMessageHead()
      await responder.sendPart(beginning.subarray(sent, due))
      sent = due
    },
    sendRest,
    async complete(content: Content) {
      await sendRest(content)
      await responder.sendEnd()
    },
  }
}

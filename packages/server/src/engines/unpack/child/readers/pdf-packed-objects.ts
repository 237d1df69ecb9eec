import type { Source } from '../source.ts'
import { decodeStream, listFilterChains, openStreamBytes } from './pdf-decode.ts'
import type { Decryption } from './pdf-encryption.ts'
import { findStreams, openObjects } from './pdf-objects.ts'
import { getValue, type PdfValue, parseValue } from './pdf-values.ts'

const maxStreams = 1000
const maxObjects = 100_000
/** The bytes of all object streams together that are kept in memory at a time. */
const maxBytes = 16 * 2 ** 20

/** Reads the objects in object streams. Filters and lengths of other streams may be among them. */
export async function listPackedObjects(
  source: Source,
  decryption: Decryption | undefined,
): Promise<Map<number, PdfValue[]>> {
  const packed = new Map<number, PdfValue[]>()
  // The filters of an object stream cannot be in another one.
  const objects = openObjects(source, async () => new Map())
  let streams = 0
  let count = 0
  for (const stream of findStreams(source, 0)) {
    const { dictionary } = stream
    if (dictionary === undefined || getValue(dictionary, 'Type') !== 'ObjStm') continue
    if (++streams > maxStreams || count > maxObjects) break
    const [chain = []] = await listFilterChains(dictionary, objects)
    const open = openStreamBytes(source, { ...stream, stop: stream.end }, decryption, chain)
    if (open === undefined) continue
    const text = await readText(decodeStream(open, chain, { isDamaged: false }))
    const first = getValue(dictionary, 'First')
    count += addObjects(packed, text, typeof first === 'number' ? first : 0)
  }
  return packed
}

async function readText(bytes: Iterable<Buffer> | AsyncIterable<Buffer>): Promise<string> {
  let text = ''
  for await (const piece of bytes) {
    text += piece.toString('latin1')
    if (text.length > maxBytes) break
  }
  return text
}

/** Adds the objects of one stream, which begins with pairs of a number and a position behind `first`. */
function addObjects(packed: Map<number, PdfValue[]>, text: string, first: number): number {
  const numbers = (text.slice(0, first).match(/\d{1,10}/g) ?? []).slice(0, 2 * maxObjects)
  for (let n = 0; n + 1 < numbers.length; n += 2) {
    const at = first + Number(numbers[n + 1])
    // Only short values are of interest: a filter, its parameters or a length.
    const value = parseValue(text.slice(at, at + 1024), 0)?.value ?? null
    const known = packed.get(Number(numbers[n]))
    if (known === undefined) packed.set(Number(numbers[n]), [value])
    else if (known.length < 4) known.push(value)
  }
  return numbers.length / 2
}

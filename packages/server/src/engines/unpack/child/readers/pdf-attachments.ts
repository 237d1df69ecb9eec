import type { Source } from '../reader.ts'
import { decodeStream, listFilterChains, openStreamBytes } from './pdf-decode.ts'
import type { Decryption } from './pdf-encryption.ts'
import { findStreams, type Objects, openObjects, readValueAt } from './pdf-objects.ts'
import { getValue, isDictionary, isReference, type PdfValue, parseValue } from './pdf-values.ts'
import { listMatches } from './text-lines.ts'

/** The key of the streams that a description of a file names, with its letters as they are or as escapes. */
const embeddedFiles = /\/(?:E|#45)(?:F|#46)(?=[\0\s<\d%])/g
const longestKey = 8
const maxAttachments = 10_000
const maxDepth = 8

/**
 * The numbers of the objects that are attachments. Their type is optional, so that an attachment may look like any other
 * stream.
 */
export async function listAttachments(source: Source, objects: Objects): Promise<Set<number>> {
  const found = new Set<number>()

  async function addStreams(value: PdfValue) {
    for (const resolved of await objects.resolve(value)) {
      if (!isDictionary(resolved)) continue
      for (const stream of [...resolved.values()].flat()) if (isReference(stream)) found.add(stream.object)
    }
  }

  async function search(value: PdfValue, depth = 0) {
    if (depth > maxDepth || found.size > maxAttachments) return
    if (Array.isArray(value)) for (const item of value) await search(item, depth + 1)
    if (!isDictionary(value)) return
    for (const [key, items] of value) {
      for (const item of items) await (key === 'EF' ? addStreams(item) : search(item, depth + 1))
    }
  }

  for (const at of listMatches(source, embeddedFiles, longestKey)) {
    if (found.size > maxAttachments) break
    const key = /^\/(?:E|#45)(?:F|#46)/.exec(source.read(at, at + longestKey).toString('latin1'))?.[0] ?? ''
    await addStreams(readValueAt(source, at + key.length))
  }
  for (const values of (await objects.listPacked()).values()) for (const value of values) await search(value)
  return found
}

const maxObjectStreams = 1000
const maxPackedObjects = 100_000
/** The bytes of all object streams together that are kept in memory at a time. */
const maxPackedBytes = 16 * 2 ** 20

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
    if (++streams > maxObjectStreams || count > maxPackedObjects) break
    const [chain = []] = await listFilterChains(dictionary, objects)
    const open = openStreamBytes(source, { ...stream, stop: stream.end }, decryption, chain)
    if (open === undefined) continue
    const text = await readObjectStream(decodeStream(open, chain, { isDamaged: false }))
    const first = getValue(dictionary, 'First')
    count += addObjects(packed, text, typeof first === 'number' ? first : 0)
  }
  return packed
}

async function readObjectStream(bytes: Iterable<Buffer> | AsyncIterable<Buffer>): Promise<string> {
  let text = ''
  for await (const piece of bytes) {
    text += piece.toString('latin1')
    if (text.length > maxPackedBytes) break
  }
  return text
}

/** Adds the objects of one stream, which begins with pairs of a number and a position behind `first`. */
function addObjects(packed: Map<number, PdfValue[]>, text: string, first: number): number {
  const numbers = (text.slice(0, first).match(/\d{1,10}/g) ?? []).slice(0, 2 * maxPackedObjects)
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

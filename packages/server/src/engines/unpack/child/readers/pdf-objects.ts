import type { Source } from '../reader.ts'
import { type Dictionary, isDictionary, isReference, type PdfValue, parseValue, skipBlanks } from './pdf-values.ts'

/** A stream object, found by its keywords and not by the table of objects, which may lie. */
export type PdfStream = {
  /** 0 where no object number is before the dictionary. */
  object: number
  generation: number
  /** Undefined where the bytes before the stream cannot be read as a dictionary. */
  dictionary: Dictionary | undefined
  /** Only a few keys could be read, because the dictionary is damaged. */
  isDamaged?: boolean
  /** The bytes of the dictionary, one character each. */
  text: string
  /** Every program takes what is before the dictionary for the beginning of this object, and of no other. */
  hasPlainHead: boolean
  start: number
  /** The position of the first `endstream`, or the end of the content. */
  end: number
}

const streamMark = Buffer.from('stream')
const endMark = Buffer.from('endstream')
const objectMark = Buffer.from('obj')

/** Ordinary dictionaries are short. */
const shortBytes = 2048
const maxDictionaryBytes = 65_536
const maxStarts = 200

/**
 * Yields the stream objects in the order of their positions. One may begin within another one: programs that rebuild
 * the table of objects look for them everywhere, also behind an object that does not end.
 */
export function* findStreams(source: Source, from: number): Generator<PdfStream> {
  let lastEnd = from
  for (let at = source.find(streamMark, from); at !== -1; ) {
    const around = source.read(Math.max(0, at - 3), at + 16).toString('latin1')
    const before = at >= 3 ? around.slice(0, 3) : ''
    const lineEnd = /^stream(?:[ \t]*(?:\r\n|\n|\r))?/.exec(around.slice(before.length))
    if (before === 'end' || lineEnd === null) {
      at = source.find(streamMark, at + streamMark.length)
      continue
    }
    const start = at + (lineEnd[0]?.length ?? streamMark.length)
    const head = readDictionaryBefore(source, at) ?? readDamagedHead(source, at)
    // The word may also be part of a text.
    if (head === undefined && !/>>\s*$/.test(source.read(Math.max(0, at - 64), at).toString('latin1'))) {
      at = source.find(streamMark, at + streamMark.length)
      continue
    }
    // Bytes of a stream that look like the keyword alone are data.
    if (at >= lastEnd || (head !== undefined && head.object !== 0)) {
      const found = at < lastEnd && lastEnd < source.bytes ? lastEnd : source.find(endMark, start)
      const end = found === -1 ? source.bytes : found
      yield {
        ...(head ?? { object: 0, generation: 0, dictionary: undefined, text: '', hasPlainHead: false }),
        start,
        end,
      }
      lastEnd = Math.max(lastEnd, end)
    }
    at = source.find(streamMark, start)
  }
}

/** An object begins in a line of its own behind the end of another one, a comment or the header. */
const plainHead = /(?:endobj[ \t]*|[\r\n]%[^\r\n]*)[\r\n]\s*\d+ \d+ obj\s*$/
const maxHeadBytes = 64

type Head = Pick<PdfStream, 'object' | 'generation' | 'dictionary' | 'text' | 'hasPlainHead' | 'isDamaged'>

function readDictionaryBefore(source: Source, end: number): Head | undefined {
  return readDictionaryWithin(source, end, shortBytes) ?? readDictionaryWithin(source, end, maxDictionaryBytes)
}

/** Tries each `<<` from the last one on: that of an inner dictionary does not lead to the keyword. */
function readDictionaryWithin(source: Source, end: number, bytes: number): Head | undefined {
  const text = source.read(Math.max(0, end - bytes), end).toString('latin1')
  if (!/>>[\0\t\n\f\r ]*(?:%[^\r\n]*[\r\n][\0\t\n\f\r ]*)*$/.test(text.slice(-256))) return undefined
  let start = text.lastIndexOf('<<')
  for (let tries = 0; start !== -1 && tries < maxStarts; tries++) {
    const parsed = parseValue(text, start)
    if (parsed !== undefined && isDictionary(parsed.value) && skipBlanks(text, parsed.end) === text.length) {
      const before = text.slice(Math.max(0, start - maxHeadBytes), start)
      const number = /(\d{1,10})\s+(\d{1,10})\s+obj\s*$/.exec(before)
      return {
        hasPlainHead: plainHead.test(before),
        object: Number(number?.[1] ?? 0),
        generation: Number(number?.[2] ?? 0),
        dictionary: parsed.value,
        text: text.slice(start, parsed.end),
      }
    }
    start = start === 0 ? -1 : text.lastIndexOf('<<', start - 1)
  }
  return undefined
}

const keys = ['Type', 'Filter', 'F', 'DecodeParms', 'DP', 'Length']

/** Programs read the keys of a dictionary that is damaged elsewhere: the last one of an object that has not ended. */
function readDamagedHead(source: Source, end: number): Head | undefined {
  const before = source.read(Math.max(0, end - shortBytes), end).toString('latin1')
  const wordAt = before.lastIndexOf('obj')
  const [, object, generation] = /(\d{1,10})\s+(\d{1,10})\s+$/.exec(before.slice(0, Math.max(0, wordAt))) ?? []
  const text = before.slice(wordAt + 'obj'.length)
  if (object === undefined || !text.includes('<<') || !/[\s>]$/.test(text) || text.includes('endstream'))
    return undefined
  const dictionary: Dictionary = new Map()
  for (const key of keys) {
    const found = new RegExp(`/${key}(?![\\w#.-])`).exec(text)
    const value = found === null ? undefined : parseValue(text, found.index + found[0].length)?.value
    if (value !== undefined) dictionary.set(key, [value])
  }
  const numbers = { object: Number(object), generation: Number(generation) }
  return { ...numbers, dictionary, text, hasPlainHead: false, isDamaged: true }
}

const maxObjects = 200_000
const maxDefinitions = 4
const maxSteps = 8

/** Finds objects by their numbers. The positions are collected when the first one is asked for. */
export function openObjects(source: Source, listPacked: () => Promise<Map<number, PdfValue[]>>) {
  let positions: Map<number, number[]> | undefined
  let packed: Map<number, PdfValue[]> | undefined

  async function listDefinitions(object: number): Promise<PdfValue[]> {
    positions ??= indexObjects(source)
    const found = (positions.get(object) ?? []).map((at) => readValueAt(source, at))
    if (found.length > 0) return found
    packed ??= await listPacked()
    return packed.get(object) ?? []
  }

  return {
    /** The objects in object streams, by number. */
    async listPacked(): Promise<Map<number, PdfValue[]>> {
      packed ??= await listPacked()
      return packed
    },
    /** The values that a value may stand for: more than one where an object is defined several times. */
    async resolve(value: PdfValue, steps = 0): Promise<PdfValue[]> {
      if (!isReference(value)) return [value]
      if (steps > maxSteps) return [null]
      const resolved: PdfValue[] = []
      for (const definition of (await listDefinitions(value.object)).slice(-maxDefinitions)) {
        resolved.push(...(await this.resolve(definition, steps + 1)))
      }
      return resolved.length === 0 ? [null] : resolved.slice(-maxDefinitions)
    },
  }
}

export type Objects = ReturnType<typeof openObjects>

export function readValueAt(source: Source, at: number): PdfValue {
  for (const bytes of [512, maxDictionaryBytes]) {
    const parsed = parseValue(source.read(at, at + bytes).toString('latin1'), 0)
    if (parsed !== undefined && parsed.end < bytes) return parsed.value
  }
  return null
}

/** The positions behind `obj` by object number. */
function indexObjects(source: Source): Map<number, number[]> {
  const positions = new Map<number, number[]>()
  let count = 0
  for (let at = source.find(objectMark, 0); at !== -1 && count < maxObjects; at = source.find(objectMark, at + 3)) {
    const before = source.read(Math.max(0, at - 32), at).toString('latin1')
    const number = /(\d{1,10})\s+\d{1,10}\s+$/.exec(before)?.[1]
    if (number === undefined) continue
    count++
    const known = positions.get(Number(number))
    if (known === undefined) positions.set(Number(number), [at + 3])
    else known.push(at + 3)
  }
  return positions
}

const trailerMark = Buffer.from('trailer')
const maxTrailers = 64

/** The dictionaries behind the keyword `trailer`. */
export function listTrailers(source: Source): Dictionary[] {
  const trailers: Dictionary[] = []
  let at = source.find(trailerMark, 0)
  while (at !== -1 && trailers.length < maxTrailers) {
    const value = readValueAt(source, at + trailerMark.length)
    if (isDictionary(value)) trailers.push(value)
    at = source.find(trailerMark, at + trailerMark.length)
  }
  return trailers
}

import type { Source } from '../source.ts'

/** A value of a list of MAPI properties that has a length of its own, or a row of values that have not. */
export type MapiValue = { id: number; start: number; end: number }

/** The bytes of values that all have the same length, by their type. They are filled up to four. */
const fixedBytes: Record<number, number> = {
  1: 4,
  2: 4,
  3: 4,
  4: 4,
  5: 8,
  6: 8,
  7: 8,
  10: 4,
  11: 4,
  20: 8,
  64: 8,
  72: 16,
}
const types = { object: 0x0d, text: 0x1e, wideText: 0x1f, binary: 0x102 }
const manyFlag = 0x1000
const firstNamedId = 0x8000
const guidBytes = 16
const maxValues = 100_000

const toPadded = (bytes: number) => Math.ceil(bytes / 4) * 4

/** Lists the texts, binary values, objects and rows of values of a property list in TNEF; ends with `damaged` where it makes no sense. */
export function* listMapiValues(source: Source, start: number, end: number): Generator<MapiValue | 'damaged'> {
  let at = start
  let values = 0

  /** Reads a number, which is beyond everything where the list has ended. */
  function readNumber(): number {
    const bytes = source.read(at, at + 4)
    at += 4
    return bytes.length < 4 || at > end ? Number.POSITIVE_INFINITY : bytes.readUInt32LE(0)
  }

  function skipName() {
    at += guidBytes
    const isText = readNumber() === 1
    const value = readNumber()
    if (isText) at += toPadded(value)
  }

  for (let left = readNumber(); left > 0; left--) {
    const tag = readNumber()
    if (!Number.isFinite(tag) || ++values > maxValues) return yield 'damaged'
    const [type, id] = [tag & 0xffff, tag >>> 16]
    if (id >= firstNamedId) skipName()
    const isMany = (type & manyFlag) !== 0
    const kind = type & ~manyFlag
    const bytes = fixedBytes[kind]
    if (bytes !== undefined) {
      const count = isMany ? readNumber() : 1
      const valueEnd = at + bytes * count
      if (isMany && valueEnd <= end) yield { id, start: at, end: valueEnd }
      at = valueEnd
    } else if (Object.values(types).includes(kind)) {
      for (let count = readNumber(); count > 0; count--) {
        const length = readNumber()
        if (at + length > end || ++values > maxValues) return yield 'damaged'
        // An object begins with the identifier of its interface.
        yield { id, start: kind === types.object ? at + guidBytes : at, end: at + length }
        at += toPadded(length)
      }
    } else return yield 'damaged'
    // The last value may lack the bytes that fill it up.
    if (at > end + 3) return yield 'damaged'
  }
}

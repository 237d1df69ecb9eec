import type { Doubt } from '../../../../domain/ports/engines.ts'
import type { Reader } from '../reader.ts'
import type { Source } from '../source.ts'

const frameMagic = 0xfd2f_b528
const maxFrames = 100_000
const maxBlocks = 1_000_000
/** Parallel writers note the length of the next frame in a skippable one. */
const maxNoteBytes = 16

const isSkippable = (magic: number) => magic >>> 4 === 0x0184_d2a5

/** Gives the bytes of skippable frames in Zstandard, which programs pass over. 7-Zip reads the other frames. */
export const zstdFramesReader: Reader = {
  name: 'Zstandard frames',
  recognizes(source) {
    const head = source.read(0, 4)
    if (head.length < 4) return false
    const magic = head.readUInt32LE(0)
    return magic === frameMagic || isSkippable(magic)
  },
  async read(source, members) {
    const doubts: Doubt[] = []
    let at = 0
    for (let count = 0; at !== -1; count++) {
      if (count === maxFrames) {
        doubts.push('ScanLimitExceeded')
        break
      }
      const head = source.read(at, at + 8)
      if (head.length < 8) break
      const magic = head.readUInt32LE(0)
      const end = isSkippable(magic) ? at + 8 + head.readUInt32LE(4) : -1
      if (end > at + 8 + maxNoteBytes) {
        await members.give({ path: `[skippable frame ${count}]`, pieces: source.pieces(at + 8, end) })
      }
      if (end !== -1) at = end
      else at = magic === frameMagic ? findFrameEnd(source, at) : -1
    }
    return { accounted: [], doubts, needsSevenZip: true }
  },
}

/** The position behind a frame, by the lengths of its blocks; -1 where they cannot be followed. */
function findFrameEnd(source: Source, start: number): number {
  const descriptor = source.read(start + 4, start + 5)[0] ?? 0
  const isSingle = (descriptor & 0x20) !== 0
  const sizeFlag = descriptor >> 6
  const sizeBytes = sizeFlag === 0 ? (isSingle ? 1 : 0) : 2 ** sizeFlag
  const dictionaryBytes = [0, 1, 2, 4][descriptor & 3] as number
  let at = start + 5 + (isSingle ? 0 : 1) + dictionaryBytes + sizeBytes
  for (let count = 0; count < maxBlocks; count++) {
    const head = source.read(at, at + 3)
    if (head.length < 3) return -1
    const value = head.readUIntLE(0, 3)
    const type = (value >> 1) & 3
    // A block of one repeated byte holds that byte alone.
    at += 3 + (type === 1 ? 1 : value >> 3)
    if ((value & 1) === 1) return at + ((descriptor & 4) === 0 ? 0 : 4)
  }
  return -1
}

import { findContainerFormat } from '../../../../domain/content/container-formats.ts'
import { headBytes } from '../../../../domain/content/content.ts'
import { decodeLzma, type LzmaEnd, lzmaHeadBytes } from '../../../../domain/content/lzma-decoder.ts'
import { isLzmaStream } from '../../../../domain/content/lzma-head.ts'
import type { Doubt } from '../../../../domain/ports/engines.ts'
import type { Members, Reader, Reading } from '../reader.ts'
import type { Source } from '../source.ts'

/** Programs choose dictionaries of at most 64 MB by themselves. */
const maxWindowBytes = 2 ** 26

/** Reads `.lzma` files with unusual properties. 7-Zip reads those that are known by their head. */
export const lzmaReader: Reader = {
  name: 'lzma',
  recognizes(source) {
    const head = source.read(0, headBytes)
    return findContainerFormat(head) === undefined && isLzmaStream(head)
  },
  read: async (source, members) => readLzma(source, members),
}

const doubtsByEnd: Record<LzmaEnd, Doubt[]> = {
  complete: [],
  damaged: ['UnsupportedContainer'],
  cut: ['UnsupportedContainer'],
  'too far': ['ScanLimitExceeded'],
}

async function readLzma(source: Source, members: Members): Promise<Reading> {
  const input = openInput(source, lzmaHeadBytes)
  let end: LzmaEnd = 'complete'
  function* decode() {
    const head = source.read(0, lzmaHeadBytes)
    end = yield* decodeLzma(head, { nextByte: input.nextByte, maxWindowBytes })
  }
  await members.give({ path: '[lzma]', pieces: decode() })
  return { accounted: [{ start: 0, end: Math.min(source.bytes, input.position()) }], doubts: doubtsByEnd[end] }
}

/** Reads the source byte by byte. */
function openInput(source: Source, start: number) {
  const pieces = source.pieces(start, source.bytes)
  let piece: Buffer = Buffer.alloc(0)
  let at = 0
  let pieceStart = start
  return {
    nextByte(): number {
      if (at === piece.length) {
        const next = pieces.next()
        if (next.done === true) return -1
        pieceStart += piece.length
        piece = next.value
        at = 0
      }
      return piece[at++] as number
    },
    position: () => pieceStart + at,
  }
}

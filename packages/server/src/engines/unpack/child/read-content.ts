import { listContainerFormats } from '../../../domain/content/container-formats.ts'
import { headBytes } from '../../../domain/content/content.ts'
import type { Doubt } from '../../../domain/ports/engines.ts'
import { readEmbedded } from './embedded.ts'
import { findGaps, isPadding, type Members, type Range, type Reader, type Reading, type Source } from './reader.ts'
import { appleSingleReader, macBinaryReader, pbzxReader } from './readers/apple.ts'
import { ascii85Reader } from './readers/ascii85.ts'
import { base64TextReader } from './readers/base64-text.ts'
import { binHexReader } from './readers/binhex.ts'
import { cmsReader } from './readers/cms.ts'
import {
  activeMimeReader,
  lzmaReader,
  zisofsReader,
  zlibReader,
  zstdFramesReader,
} from './readers/compressed-streams.ts'
import { encodedTextReader } from './readers/encoded-text.ts'
import { gitObjectReader, gitStreamReader } from './readers/git.ts'
import { gzipReader } from './readers/gzip.ts'
import { hexTextReader } from './readers/hex-text.ts'
import { isoReader } from './readers/iso.ts'
import { mailReader } from './readers/mail.ts'
import { numberTextReader } from './readers/number-text.ts'
import { oleReader } from './readers/ole.ts'
import { armourReader, openPgpReader } from './readers/openpgp.ts'
import { patchReader } from './readers/patch.ts'
import { pdfReader } from './readers/pdf.ts'
import { pharReader } from './readers/phar.ts'
import { compressedRtfReader, rtfReader } from './readers/rtf.ts'
import { skippedReader } from './readers/skipped.ts'
import { tarReader } from './readers/tar.ts'
import { tnefReader } from './readers/tnef.ts'
import { wideTextReader } from './readers/wide-text.ts'
import { zipReader } from './readers/zip.ts'

/** Reads content with 7-Zip, of the format that 7-Zip calls `type`. */
type ReadWithSevenZip = (source: Source, type: string) => Promise<Reading>

/**
 * Reads content in every way in which a program may read it, and gives what each reading holds. Bytes that no reading
 * accounts for are given as content of their own. Content that no reader recognises is searched for containers that
 * begin further in.
 */
export async function readContent(source: Source, members: Members, readWithSevenZip: ReadWithSevenZip) {
  const readings = await readStart(source, members, readWithSevenZip)
  const readCut = async (cut: Source) => {
    const counted = countUnseen(members)
    const cutReadings = await readStart(cut, counted.members, readWithSevenZip)
    const bytesOfSevenZip = cutReadings.reduce((sum, reading) => sum + (reading.givenBytes ?? 0), 0)
    return { ...merge(cutReadings), givenBytes: counted.getBytes() + bytesOfSevenZip }
  }
  if (readings.length === 0) readings.push(await readEmbedded(source, readCut))
  const searched = readings.flatMap((reading) => reading.searched ?? [])
  if (searched.length > 0) {
    const { doubts } = await readEmbedded(source, readCut, searched)
    readings.push({ accounted: [], doubts })
  }
  const { accounted, doubts } = merge(readings)
  if (accounted.length > 0) await giveGaps(source, members, accounted)
  return { doubts, isOpened: accounted.length > 0 }
}

/** Gives members on as content that ClamAV has not seen, and counts their bytes. */
function countUnseen(members: Members): { members: Members; getBytes(): number } {
  let bytes = 0

  async function* count(pieces: Parameters<Members['give']>[0]['pieces']) {
    for await (const piece of pieces) {
      bytes += piece.length
      yield piece
    }
  }

  const give: Members['give'] = ({ path, pieces }) => members.give({ path, pieces: count(pieces) })
  return { members: { give }, getBytes: () => bytes }
}

/** The readings of content by its start: of each reader that recognises it, and of 7-Zip where no reader knows it. */
async function readStart(source: Source, members: Members, readWithSevenZip: ReadWithSevenZip): Promise<Reading[]> {
  const readings: Reading[] = []
  const unfinished: Reader[] = []
  for (const reader of readers) {
    if (!reader.recognizes(source)) continue
    const reading = await reader.read(source, members)
    // A reader that accounts for nothing has found that the content is of another kind.
    if (reading.accounted.length + reading.doubts.length > 0 || reading.needsSevenZip === true) readings.push(reading)
    if (reading.needsSevenZip === true) unfinished.push(reader)
  }
  const needsSevenZip = readings.length === 0 || unfinished.length > 0
  // A reader of text may understand the content as well, because some containers begin with text.
  const formats = listContainerFormats(source.read(0, headBytes)).filter((format) => needsSevenZip || !format.hasReader)
  const byHead = formats.flatMap(({ unpackAs }) => unpackAs ?? [])
  // A zip behind other bytes is recognised by its end alone.
  const byReader = unfinished.flatMap(({ unpackAs }) => unpackAs ?? [])
  const types = new Set([...byHead, ...byReader, ...listTypesByTail(source)])
  for (const type of types) readings.push(await readWithSevenZip(source, type))
  // Members that a reader leaves to 7-Zip were not scanned where 7-Zip is not asked.
  if (unfinished.length > 0 && types.size === 0) readings.push({ accounted: [], doubts: ['UnsupportedContainer'] })
  return readings
}

/** 7-Zip's names of disk images that are recognised by the block at their end. */
function listTypesByTail(source: Source): string[] {
  const tail = source.read(source.bytes - tailBytes, source.bytes).toString('latin1')
  if (tail.length < tailBytes) return []
  return Object.entries(tailMarks).flatMap(([type, mark]) => (tail.startsWith(mark) ? [type] : []))
}

const tailBytes = 512
const tailMarks = { dmg: 'koly\0\0\0\x04', vhd: 'conectix' }

function merge(readings: Reading[]): { accounted: Range[]; doubts: Doubt[] } {
  return {
    accounted: readings.flatMap((reading) => reading.accounted),
    doubts: [...new Set(readings.flatMap((reading) => reading.doubts))],
  }
}

async function giveGaps(source: Source, members: Members, accounted: Range[]) {
  for (const gap of findGaps(accounted, source.bytes)) {
    if (gap.start === gap.end || isPadding(source, gap)) continue
    const path = `[bytes ${gap.start} to ${gap.end}]`
    await members.give({ path, pieces: source.pieces(gap.start, gap.end) })
  }
}

/** The readers of Assay. Formats that 7-Zip alone reads are in the table of domain/content/container-formats.ts. */
export const readers: Reader[] = [
  zipReader,
  tarReader,
  mailReader,
  tnefReader,
  compressedRtfReader,
  encodedTextReader,
  binHexReader,
  base64TextReader,
  hexTextReader,
  numberTextReader,
  ascii85Reader,
  patchReader,
  wideTextReader,
  armourReader,
  openPgpReader,
  cmsReader,
  gzipReader,
  pbzxReader,
  pdfReader,
  lzmaReader,
  zstdFramesReader,
  zlibReader,
  gitObjectReader,
  gitStreamReader,
  appleSingleReader,
  macBinaryReader,
  oleReader,
  activeMimeReader,
  rtfReader,
  isoReader,
  zisofsReader,
  pharReader,
  skippedReader,
]

import type { Reader } from './reader.ts'
import { activeMimeReader } from './readers/activemime.ts'
import { appleSingleReader, macBinaryReader } from './readers/apple.ts'
import { armourReader } from './readers/armour.ts'
import { ascii85Reader } from './readers/ascii85.ts'
import { base64TextReader } from './readers/base64-text.ts'
import { binHexReader } from './readers/binhex.ts'
import { cmsReader } from './readers/cms.ts'
import { compressedRtfReader } from './readers/compressed-rtf.ts'
import { encodedTextReader } from './readers/encoded-text.ts'
import { gitObjectReader, gitStreamReader } from './readers/git.ts'
import { gzipReader } from './readers/gzip.ts'
import { hexTextReader } from './readers/hex-text.ts'
import { isoReader } from './readers/iso.ts'
import { lzmaReader } from './readers/lzma.ts'
import { mailReader } from './readers/mail.ts'
import { numberTextReader } from './readers/number-text.ts'
import { oleReader } from './readers/ole.ts'
import { openPgpReader } from './readers/openpgp.ts'
import { patchReader } from './readers/patch.ts'
import { pbzxReader } from './readers/pbzx.ts'
import { pdfReader } from './readers/pdf.ts'
import { pharReader } from './readers/phar.ts'
import { rtfReader } from './readers/rtf.ts'
import { skippedReader } from './readers/skipped.ts'
import { tarReader } from './readers/tar.ts'
import { tnefReader } from './readers/tnef.ts'
import { wideTextReader } from './readers/wide-text.ts'
import { zipReader } from './readers/zip.ts'
import { zisofsReader } from './readers/zisofs.ts'
import { zlibReader } from './readers/zlib.ts'
import { zstdFramesReader } from './readers/zstd-frames.ts'

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

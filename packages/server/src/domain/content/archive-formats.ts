import { isBinary, type Magic, magic, openedByNone, openedByReader, type Row } from './format-row.ts'

export const tarBlockBytes = 512

/** Whether a block is the header of a tar member: its checksum, over signed or unsigned bytes, is right. */
export function hasTarChecksum(block: Buffer): boolean {
  if (block.length < tarBlockBytes) return false
  const stored = readTarChecksum(block)
  if (stored === undefined) return false
  let sum = 8 * 0x20
  let negative = 0
  for (let at = 0; at < tarBlockBytes; at++) {
    if (at === 148) at = 156
    const byte = block[at] ?? 0
    sum += byte
    if (byte > 127) negative += 256
  }
  return stored === sum || stored === sum - negative
}

/**
 * Whether one of the blocks in the head is a header without a signature: GNU tar skips what stands before it. Headers
 * with a signature are found in any content, wherever they stand.
 */
export function hasOldTarHeader(head: Buffer): boolean {
  for (let at = 0; at + tarBlockBytes <= head.length; at += tarBlockBytes) {
    // Most blocks have no digit in the middle of the checksum.
    if (((head[at + 151] as number) ^ 0x30) > 7) continue
    const block = head.subarray(at, at + tarBlockBytes)
    if (isTarHead(block) && !hasTarSignature(block)) return true
  }
  return false
}

export const hasTarSignature = (block: Buffer) => block.toString('latin1', 257, 262) === 'ustar'

/**
 * Whether content begins with a tar header, with or without the signature that newer forms have. Other content may have
 * the right checksum by chance, so the field of the size must hold a number too.
 */
function isTarHead(head: Buffer): boolean {
  return head[0] !== 0 && hasTarChecksum(head) && isTarNumber(head.subarray(124, 136))
}

/** Digits and what may stand around them, or a binary number. */
function isTarNumber(field: Buffer): boolean {
  const first = field[0] ?? 0
  return first === 0x80 || first === 0xff || /^[-+ \0]*[0-7o_]*(?:[ \0]|$)/i.test(field.toString('latin1'))
}

/** Reads blanks, octal digits and the end of the field. Most other blocks have none of them there. */
function readTarChecksum(block: Buffer): number | undefined {
  let at = 148
  while (at < 156 && (block[at] === 0x20 || block[at] === 0)) at++
  const start = at
  let value = 0
  for (; at < 156; at++) {
    const digit = (block[at] ?? 0) - 0x30
    if (digit < 0 || digit > 7) break
    value = value * 8 + digit
  }
  // The blanks that stand for the field in the sum make at least three digits.
  return at - start < 3 ? undefined : value
}

/** The header of an object of Git: its type and its length. */
const objectHeader = /^(?:blob|commit|tree|tag) \d{1,20}\0/
const longestHeader = 32

/** The length of the header with which an object of Git begins; 0 for other content. */
export const findGitHeader = (head: Buffer): number =>
  objectHeader.exec(head.toString('latin1', 0, longestHeader))?.[0].length ?? 0

/** The commands with which `git fast-export` begins a stream, and the starts of the lines that may follow them. */
const streamStarts = [
  /^blob\n(?:mark :|original-oid |data )/,
  /^(?:commit|reset|tag) \S+\n(?:mark :|original-oid |author |committer |from |commit |reset |\n)/,
  /^feature (?:done|[\w-]+=\S+)\n/,
]
const longestCommand = 1024

/** Whether content begins as a stream for `git fast-import`. */
export function isGitStream(head: Buffer): boolean {
  const text = head.toString('latin1', 0, longestCommand)
  return streamStarts.some((start) => start.test(text))
}

/** The formats of Git: packs and bundles, objects that zlib held, and streams with the history of a repository. */
export const gitFormats: Row[] = [
  openedByNone('git', magic('# v2 git bundle\n'), magic('# v3 git bundle\n'), magic('PACK\x00\x00\x00\x02')),
  {
    ...openedByReader('git-object', undefined, magic('blob '), magic('commit '), magic('tree '), magic('tag ')),
    confirm: (head) => findGitHeader(head) > 0,
  },
  {
    ...openedByReader(
      'git-stream',
      undefined,
      ...['blob\n', 'commit ', 'reset ', 'tag ', 'feature '].map((text) => magic(text)),
    ),
    confirm: isGitStream,
  },
]

/**
 * Signatures of archivers, compressors and disk tools that few people use any more, by the name of the program. The
 * programs still exist, and unpackers for everything know many of these formats.
 */
const oldSignatures: Record<string, string[]> = {
  ABComp: ['\x03AB2'],
  'Acronis True Image': ['\xce\x24\xb9\xa2\x20\x00\x00\x00'],
  Ai: ['Ai\x01\x00', 'Ai\x02\x00'],
  'AIX ar': ['<bigaf>\n', '<aiaff>\n'],
  AKT32: ['AKT32'],
  AR7: [',AR7'],
  ArcFS: ['\x1aarchive', 'Archive\x00'],
  ARQ: ['gW\x04\x01'],
  BCM: ['BCM1'],
  BIX: ['BIX0'],
  BlakHole: ['BH\x05\x07'],
  Blink: ['Blink'],
  BSArc: ['BSA\x00', '\xffBSG'],
  bzip: ['BZ0'],
  'CA ZIP': ['\x0d\x0a\x1aCAZIP'],
  ChArc: ['SChF'],
  ChiefLZA: ['ChfLZ'],
  Compressia: ['CMP0CMP'],
  CrossePAC: ['DSIGDCC'],
  Crush: ['CRUSH'],
  DACT: ['\xc3TCD'],
  DC: ['<DC-'],
  DeepFreezer: ['yz00'],
  DiskDoubler: ['DDAR', '\xab\xcd\x00\x54'],
  DMS: ['DMS!'],
  DRY: ['-H2O'],
  EPC: ['\x8f\xaf\xac\x8c'],
  FoxSQZ: ['FOXSQZ'],
  Freeze: ['\x1f\x9f\x4a\x10\x0a'],
  GCA: ['GCAX'],
  GRZip: ['GRZipII\x00'],
  HA: ['HA\x00\x00', 'HA\x01\x00'],
  HAP: ['\x913HF'],
  HPack: ['HPAK'],
  IMP: ['IMP\x0a'],
  'JAR of ARJ': ['JARCS'],
  JRC: ['JRchive'],
  KBoom: ['\xc2\xa8MP\xc2\xa8'],
  KGB: ['KGB_arch'],
  LIM: ['LIM\x1a'],
  LZS221: ['sTaC'],
  MDCD: ['MDmd'],
  Mercurial: ['HG10GZ', 'HG10BZ', 'HG10UN', 'HG20\x00'],
  'MP3-Archiver': ['MP3\x1a'],
  NetWare: ['Packed File \x00'],
  'Norton Ghost': ['\xfe\xef\x01'],
  NPack: ['MSTSM'],
  NRV: ['\x00\x9enrv\xff'],
  NTBackup: ['TAPE'],
  NuFile: ['N\xf5F\xe9l\xe5'],
  pack200: ['\xca\xfe\xd0\x0d'],
  PackDir: ['PACK\x00'],
  PackIt: ['PMag', 'PMa4'],
  'Pack Magic': ['\x40\xc3\xa2\x01\x00'],
  PAKLeo: ['LEOLZW'],
  PAQ: ['paq8', 'pQ9\x01', '\xaa\x40\x5f\x77\x1f\xe5\x82\x0d'],
  PAR: ['PHILIPP', 'PAR\x00'],
  PartImage: ['PaRtImAgE-VoLuMe'],
  PowerPacker: ['PP11', 'PP20'],
  PPMZ: ['PPMZ'],
  'Pro-Pack': ['RNC\x01', 'RNC\x02'],
  QFC: ['\x1aFC\x1a', '\x1aQF\x1a'],
  ReDuq: ['rdqx'],
  SAPCAR: ['CAR 2.00', 'CAR 2.01'],
  Softlib: ['SLIB'],
  'Squash of Acorn': ['SQSH'],
  'Squeeze It': ['HLSQZ'],
  Squish: ['s\xb2\x90\xf4'],
  SQWEZ: ['SQWEZ'],
  SZip: ['SZ\x0a\x04'],
  Terse: ['\x05\x01\x01\x00'],
  TOP4: ['T4\x1a'],
  TPac: ['\x04TPAC\x03'],
  TSComp: ['e]\x13\x8c\x08\x01\x03\x00'],
  UC2: ['UC2\x1a'],
  UCL: ['\x00\xe9UCL\xff\x01\x1a'],
  VSARC: ['VS\x1a'],
  WinHKI: ['a\\\x04\x05'],
  X1: ['XhDr'],
  Xpack: ['\xcd jm'],
  XPK: ['XPKF'],
  Xtreme: ['ULEB\x00', 'ULEB\x0a'],
  ZET: ['OZ\xc3\x9d'],
  ZPack: ['\x01ZPK\x01'],
  ZZip: ['ZZ \x00\x00'],
}

/** Signatures that stand further in. */
const laterOldSignatures: Magic[] = [
  magic('-afx-', 2),
  magic('-sw1-', 2),
  magic('OctSqu', 3),
  magic('\x1aJar\x1b', 14),
  magic('FTCOMP', 24),
]

const oldMagics = [
  ...Object.values(oldSignatures).flatMap((texts) => texts.map((text) => magic(text))),
  ...laterOldSignatures,
]

/** Archives of old programs. Many of the signatures are words, with which a text may begin. */
export const oldArchives: Row = { ...openedByNone('old-archive', ...oldMagics), confirm: isBinary }

import { findElfKind } from './elf-kind.ts'

/**
 * Kinds of binary content that the library does not know, does not tell apart as finely as file(1), or is slow with:
 * it unpacks gzip to look inside (0.5 to 0.8 ms), and calls every ELF file the same.
 */
export function findBinaryKind(head: Buffer): string | undefined {
  const start = head.toString('latin1', 0, 16)
  for (const [signature, type] of signatures) if (start.startsWith(signature)) return type
  if (isPythonBytecode(head)) return 'application/x-bytecode.python'
  return finders[start.slice(0, 2)]?.(head)
}

const signatures: [string, string][] = [
  ['\x1f\x8b', 'application/gzip'],
  ['\xde\x12\x04\x95', 'application/x-gettext-translation'],
  ['\x95\x04\x12\xde', 'application/x-gettext-translation'],
  ['\xfe\xed\xfe\xed', 'application/x-java-keystore'],
  ['\xce\xce\xce\xce', 'application/x-java-jce-keystore'],
  ['\xda\xda\xfe\xca', 'application/x-java-image'],
  ['\xca\xfe\xda\xda', 'application/x-java-image'],
  ['JM\x01\x00', 'application/x-java-jmod'],
  ['\xce\x9a\x57\x13', 'application/x-gdbm'],
  ['\x13\x57\x9a\xce', 'application/x-gdbm'],
  ['\x13\x57\x9a\xcd', 'application/x-gdbm'],
  ['\x13\x57\x9a\xcf', 'application/x-gdbm'],
  ['\xcd\x9a\x57\x13', 'application/x-gdbm'],
  ['\xcf\x9a\x57\x13', 'application/x-gdbm'],
  ['\x78\x9f\x3e\x22', 'application/vnd.ms-tnef'],
  ['SZDD\x88\xf0\x27\x33', 'application/x-ms-compress-szdd'],
  ['\x93NUMPY', 'application/x-numpy-data'],
  ['\x89HDF\r\n\x1a\n', 'application/x-hdf5'],
  ['070707', 'application/x-cpio'],
  ['070701', 'application/x-cpio'],
  ['070702', 'application/x-cpio'],
  ['\xc7\x71', 'application/x-cpio'],
  ['\x71\xc7', 'application/x-cpio'],
  ['dex\n03', 'application/vnd.android.dex'],
]

/** By the first two bytes, for signatures that need a second look. */
const finders: Record<string, (head: Buffer) => string | undefined> = {
  '\x7fE': findElfKind,
  MZ: (head) => (isPortable(head) ? 'application/vnd.microsoft.portable-executable' : 'application/x-dosexec'),
  '\xca\xfe': findCafeBabe,
  '\xce\xfa': findMachO,
  '\xcf\xfa': findMachO,
  '\xfe\xed': findMachO,
  '\x1a\x01': (head) => (isTerminfo(head) ? 'application/x-terminfo' : undefined),
  '\x1e\x02': (head) => (isTerminfo(head) ? 'application/x-terminfo2' : undefined),
  '\x00\x01': (head) => (isEmptyFont(head) ? 'application/octet-stream' : undefined),
  '\xd0\xcf': findOleKind,
  '\x99\x01': findPgpKey,
  '\x99\x02': findPgpKey,
  '\x99\x03': findPgpKey,
  '\x99\x00': findPgpKey,
  '\x98\x33': findPgpKey,
}

/** A version that grows with each release (0x0bb8 for 3.0, 0x0e2b for 3.14; 2.x below 0xf400), then a line end. */
function isPythonBytecode(head: Buffer): boolean {
  if (head[2] !== 0x0d || head[3] !== 0x0a || head.length < 12) return false
  const version = head.readUInt16LE(0)
  return (version >= 0x0bb8 && version < 0x1000) || (version >= 0xc4fc && version < 0xf400)
}

const isPortable = (head: Buffer) => {
  const at = head.length >= 64 ? head.readUInt32LE(60) : 0
  return at >= 4 && head.toString('latin1', at, at + 4) === 'PE\0\0'
}

/** The same four bytes begin Java classes and fat Mach-O files: a version of at least 43, or a handful of parts. */
function findCafeBabe(head: Buffer): string | undefined {
  if (head.length < 8 || head.readUInt32BE(0) !== 0xcafebabe) return undefined
  const next = head.readUInt32BE(4)
  return (next & 0xffff) >= 43 ? 'application/x-java-applet' : next < 43 ? 'application/x-mach-binary' : undefined
}

function findMachO(head: Buffer): string | undefined {
  const magic = head.length >= 28 ? head.readUInt32BE(0) : 0
  return [0xfeedface, 0xfeedfacf, 0xcefaedfe, 0xcffaedfe].includes(magic) ? 'application/x-mach-binary' : undefined
}

/** Twelve bytes of sizes, then the names of the terminal. */
const isTerminfo = (head: Buffer) => /^[a-zA-Z0-9][a-zA-Z0-9.][^\0]{3}/.test(head.toString('latin1', 12, 17))

/** The library believes the first four bytes; a font has tables, a cache of icons that begins alike has none there. */
const isEmptyFont = (head: Buffer) => head.length < 12 || head.readUInt16BE(4) === 0

/** A public key packet in the old form: its version is 3 or 4, its algorithm a registered one. */
function findPgpKey(head: Buffer): string | undefined {
  const at = head[0] === 0x99 ? 3 : 2
  const isKey = (head[at] === 4 || head[at] === 3) && [1, 2, 3, 16, 17, 18, 19, 22].includes(head[at + 5] ?? 0)
  return isKey ? 'application/pgp-keys' : undefined
}

/** Old Office documents share a container; the names of their streams stand in its directory as UTF-16. */
function findOleKind(head: Buffer): string | undefined {
  if (head.length < 8 || head.readUInt32BE(4) !== 0xa1b11ae1) return undefined
  return streams.find(([name]) => head.includes(name))?.[1] ?? 'application/x-ole-storage'
}

const streams = (
  [
    ['PowerPoint Document', 'application/vnd.ms-powerpoint'],
    ['WordDocument', 'application/msword'],
    ['Workbook', 'application/vnd.ms-excel'],
    ['__properties_version1.0', 'application/vnd.ms-outlook'],
    ['VisioDocument', 'application/vnd.visio'],
    ['\u4840\u3f3f\u4577\u446c\u3b6a\u45e4\u4824', 'application/x-msi'],
  ] as const
).map(([name, type]): [Buffer, string] => [Buffer.from(name, 'utf16le'), type])

import { constants, inflateRawSync } from 'node:zlib'

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

/** What an ELF file is for; undefined when its header is cut or broken. */
export function findElfKind(head: Buffer): string | undefined {
  if (head.length < 20 || head.readUInt32BE(0) !== 0x7f454c46) return undefined
  const isLittle = head[5] !== 2
  const type = isLittle ? head.readUInt16LE(16) : head.readUInt16BE(16)
  if (type === 1) return 'application/x-object'
  if (type === 2) return 'application/x-executable'
  if (type === 3) return isProgram(head, isLittle) ? 'application/x-pie-executable' : 'application/x-sharedlib'
  return type === 4 ? 'application/x-coredump' : 'application/octet-stream'
}

const dynamicSegment = 2
const interpreterSegment = 3
const maxSegments = 64
/** DT_FLAGS_1 and its bit for a program that may lie anywhere in memory. */
const flags1 = 0x6ffffffbn
const isPie = 0x08000000n

/**
 * A program and a library look alike: the linker's flag tells, where the head reaches it. Otherwise a program is what
 * asks for an interpreter, which only a few libraries do.
 */
function isProgram(head: Buffer, isLittle: boolean): boolean {
  const is64 = head[4] === 2
  const short = (at: number) => read(head, at, 2, isLittle)
  const word = (at: number) => read(head, at, is64 ? 8 : 4, isLittle)
  const segmentsAt = Number(word(is64 ? 32 : 28))
  const size = Number(short(is64 ? 54 : 42))
  const count = Math.min(Number(short(is64 ? 56 : 44)), maxSegments)
  let asksForInterpreter = false
  for (let i = 0; i < count; i++) {
    const at = segmentsAt + i * size
    const kind = Number(read(head, at, 4, isLittle))
    if (kind === interpreterSegment) asksForInterpreter = true
    if (kind !== dynamicSegment) continue
    const from = Number(word(at + (is64 ? 8 : 4)))
    const end = from + Number(word(at + (is64 ? 32 : 16)))
    if (from < 52 || end > head.length) continue
    const step = is64 ? 8 : 4
    for (let entry = from; entry < end; entry += 2 * step) {
      if (word(entry) === flags1) return (word(entry + step) & isPie) !== 0n
    }
    return false
  }
  return asksForInterpreter
}

/** Zero where the head ends. */
function read(head: Buffer, at: number, size: 2 | 4 | 8, isLittle: boolean): bigint {
  if (!(at >= 0 && at + size <= head.length)) return 0n
  if (size === 8) return isLittle ? head.readBigUInt64LE(at) : head.readBigUInt64BE(at)
  return BigInt(isLittle ? head.readUIntLE(at, size) : head.readUIntBE(at, size))
}

/**
 * What a ZIP archive is used as, told from the entries in the head; undefined when it is no ZIP archive. The library
 * takes an Android package that begins with its manifest for a Java archive, and needs 280 µs for an Office document
 * (this: 50).
 */
export function findZipKind(head: Buffer): string | undefined {
  if (head.length < 4 || head.readUInt32LE(0) !== entrySignature) {
    return /^PK(\x05\x06|\x07\x08|00PK)/.test(head.toString('latin1', 0, 6)) ? 'application/zip' : undefined
  }
  const names = new Set<string>()
  for (const entry of readEntries(head)) {
    if (names.size === 0) {
      const first = findByFirstEntry(entry)
      if (first !== undefined) return first
    }
    if (entry.name === '[Content_Types].xml') {
      const office = findOfficeKind(readContent(entry))
      if (office !== undefined) return office
    }
    names.add(entry.name)
  }
  return findByNames([...names])
}

type Entry = { name: string; method: number; data: Buffer }

const entrySignature = 0x04034b50
const nextEntry = Buffer.from('PK\x03\x04')
const maxEntries = 512
const maxContentBytes = 65_536

/** The local entries in order, as far as the head reaches. Every step moves forward, whatever sizes are claimed. */
function* readEntries(head: Buffer): Generator<Entry> {
  let at = 0
  for (let count = 0; count < maxEntries && at + 30 <= head.length; count++) {
    if (head.readUInt32LE(at) !== entrySignature) return
    const flags = head.readUInt16LE(at + 6)
    const claimed = head.readUInt32LE(at + 18)
    const nameEnd = at + 30 + head.readUInt16LE(at + 26)
    const start = nameEnd + head.readUInt16LE(at + 28)
    // A stream writer knows the size only behind the data: then the next signature ends it.
    const isOpen = (flags & 8) !== 0 && claimed === 0
    const found = isOpen ? head.indexOf(nextEntry, start) : start + claimed
    const end = found === -1 ? head.length : found
    yield {
      name: head.toString('utf8', at + 30, nameEnd),
      method: head.readUInt16LE(at + 8),
      data: head.subarray(start, end),
    }
    at = end
  }
}

/** OpenDocument and EPUB put their type, stored plainly, into the first entry. */
function findByFirstEntry(entry: Entry): string | undefined {
  if (entry.name === 'mimetype') {
    const type = readContent(entry).trim()
    return /^application\/[a-z0-9][a-z0-9.+-]{0,100}$/.test(type) ? type : undefined
  }
  return undefined
}

/** Text of an entry that is small enough to be looked into; what is cut off by the head is read as far as it goes. */
function readContent({ method, data }: Entry): string {
  if (method === 0) return data.subarray(0, maxContentBytes).toString('latin1')
  if (method !== 8) return ''
  try {
    return inflateRawSync(data, { maxOutputLength: maxContentBytes, finishFlush: constants.Z_SYNC_FLUSH }).toString(
      'latin1',
    )
  } catch {
    return ''
  }
}

/** The main part of an Office document names the program and whether macros may be inside. */
function findOfficeKind(contentTypes: string): string | undefined {
  const main = /ContentType="([^"]{1,200})\.main\+xml"/.exec(contentTypes)?.[1]
  if (main === undefined) return undefined
  return main.includes('macroEnabled') ? `${main.replace('macroEnabledTemplate', 'macroEnabled')}.12` : main
}

function findByNames(names: string[]): string {
  const has = (test: RegExp) => names.some((name) => test.test(name))
  // An Android package has a Java manifest too, so it is asked for first.
  if (has(/^(AndroidManifest\.xml|classes\d*\.dex|resources\.arsc)$/)) return 'application/vnd.android.package-archive'
  if (has(/^word\//)) return `${office}.wordprocessingml.document`
  if (has(/^xl\//)) return `${office}.spreadsheetml.sheet`
  if (has(/^ppt\//)) return `${office}.presentationml.presentation`
  if (has(/^META-INF\/mozilla\.rsa$/)) return 'application/x-xpinstall'
  if (has(/^META-INF\/(MANIFEST\.MF)?$/)) return 'application/java-archive'
  return 'application/zip'
}

const office = 'application/vnd.openxmlformats-officedocument'

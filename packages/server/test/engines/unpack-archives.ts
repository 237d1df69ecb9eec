import { readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { crc32, deflateRawSync } from 'node:zlib'
import start from '7z-wasm'
import { type Content, headBytes } from '../../src/domain/content/content.ts'
import type { UnpackBudget, Unpacker } from '../../src/domain/ports/engines.ts'

/** In halves, so that no scanner takes this file for the test virus. */
export const eicar = Buffer.from(['X5O!P%@AP[4\\PZX54(P^)7CC)7}$EICAR-STANDARD', '-ANTIVIRUS-TEST-FILE!$H+H*'].join(''))

/** Long enough that every format compresses it. */
export const member = Buffer.concat([eicar, Buffer.alloc(3000, ' ')])

/** `spooled`: as the service holds large content, in pieces and not in memory. */
export function newContent(bytes: Buffer, { spooled = false } = {}): Content {
  return {
    bytes: bytes.length,
    head: bytes.subarray(0, headBytes),
    sha1: '',
    sha256: '',
    isInMemory: !spooled,
    whole: spooled ? undefined : bytes,
    async *read(from = 0, to = bytes.length) {
      for (let at = from; at < to; at += 50_000) yield bytes.subarray(at, Math.min(to, at + 50_000))
    },
    async release() {},
  }
}

/** TypeScript declares WebAssembly with the browser's types, which this project does not load. */
declare const WebAssembly: {
  Module: new (bytes: Uint8Array) => object
  Instance: new (program: object, imports: object) => { exports: object }
}

let compiled: object | undefined

/** Compiles 7-Zip for the first archive only. */
function instantiateSevenZip(imports: object, done: (instance: object) => void): object {
  compiled ??= new WebAssembly.Module(readFileSync(fileURLToPath(import.meta.resolve('7z-wasm/7zz.wasm'))))
  const instance = new WebAssembly.Instance(compiled, imports)
  done(instance)
  return instance.exports
}

type SevenZip = {
  FS: { mkdir(path: string): void; writeFile(path: string, bytes: Buffer): void; readFile(path: string): Uint8Array }
  callMain(args: string[]): number
}

/** Makes an archive with 7-Zip and these switches: `-t7z`, `-m0=BZip2`. */
export async function writeArchive(
  switches: string[],
  members: Record<string, Buffer> = { 'eicar.com': member },
): Promise<Buffer> {
  const options = { print: () => {}, printErr: () => {}, instantiateWasm: instantiateSevenZip }
  const sevenZip = await (start as unknown as (given: object) => Promise<SevenZip>)(options)
  sevenZip.FS.mkdir('/in')
  for (const [name, bytes] of Object.entries(members)) {
    const folder = name.split('/').slice(0, -1).join('/')
    if (folder !== '') sevenZip.FS.mkdir(`/in/${folder}`)
    sevenZip.FS.writeFile(`/in/${name}`, bytes)
  }
  const single = Object.keys(members).length === 1 ? Object.keys(members)[0] : undefined
  const { exitCode } = process
  const code = sevenZip.callMain(['a', ...switches, '/out', single === undefined ? '/in/*' : `/in/${single}`])
  // 7-Zip has set the exit code of this process, which would become that of the tests.
  process.exitCode = exitCode
  if (code !== 0) throw new Error(`7-Zip could not write ${switches.join(' ')}: ${code}`)
  const extension = switches.find((one) => one.startsWith('-t'))?.slice(2) ?? '7z'
  return Buffer.from(sevenZip.FS.readFile(`/out.${extensions[extension] ?? extension}`))
}

const extensions: Record<string, string> = { gzip: 'gz', bzip2: 'bz2' }

export type ZipMember = {
  name?: string
  data?: Buffer
  method?: number
  flags?: number
  localMethod?: number
  claimedBytes?: number
  /** 64-bit fields in the directory and before the member. */
  wide?: boolean
}

export type ZipEnd = { comment?: Buffer; end64?: boolean; lieCount?: number }

/** Builds a zip by hand, with properties that no program writes. */
export function newZip(
  members: ZipMember[],
  { comment = Buffer.alloc(0), end64 = false, lieCount = 0 }: ZipEnd = {},
): Buffer {
  const locals: Buffer[] = []
  const entries: Buffer[] = []
  let offset = 0
  for (const {
    name = 'eicar.com',
    data = member,
    method = 8,
    flags = 0,
    localMethod,
    claimedBytes,
    wide = false,
  } of members) {
    const packed = method === 8 ? deflateRawSync(data) : data
    const size = claimedBytes ?? data.length
    const sizes = wide ? [0xffff_ffff, 0xffff_ffff] : [packed.length, size]
    const shared = (own: number) => [u16(flags), u16(own), u16(0), u16(0x21), u32(crc32(data)), ...sizes.map(u32)]
    const extra = wide ? Buffer.concat([u16(1), u16(16), u64(size), u64(packed.length)]) : Buffer.alloc(0)
    const names = [u16(Buffer.byteLength(name)), u16(extra.length)]
    const head = [u32(0x0403_4b50), u16(45), ...shared(localMethod ?? method), ...names]
    const local = Buffer.concat([...head, Buffer.from(name), extra, packed])
    const rest = [u16(0), u16(0), u16(0), u32(0), u32(offset), Buffer.from(name), extra]
    entries.push(Buffer.concat([u32(0x0201_4b50), u16(45), u16(45), ...shared(method), ...names, ...rest]))
    locals.push(local)
    offset += local.length
  }
  const directory = Buffer.concat(entries)
  const count = members.length + lieCount
  const wideEnd = [u32(0x0606_4b50), u64(44), u16(45), u16(45), u32(0), u32(0), u64(count), u64(count)]
  const locator = [u32(0x0706_4b50), u32(0), u64(offset + directory.length), u32(1)]
  const end64Bytes = end64 ? [...wideEnd, u64(directory.length), u64(offset), ...locator] : []
  const end = [u32(0x0605_4b50), u16(0), u16(0), u16(count), u16(count), u32(directory.length), u32(offset)]
  return Buffer.concat([...locals, directory, ...end64Bytes, ...end, u16(comment.length), comment])
}

/** RAR 4 and 5 without compression; `encryptedList` sets only the flag in the header. */
export function newRar4({ encryptedList = false } = {}): Buffer {
  const name = Buffer.from('eicar.com')
  const block = (kind: number, flags: number, body: Buffer[], data = Buffer.alloc(0)) => {
    const bytes = Buffer.concat(body)
    const head = Buffer.concat([Buffer.from([kind]), u16(flags), u16(7 + bytes.length), bytes])
    return Buffer.concat([u16(crc32(head) & 0xffff), head, data])
  }
  const sizes = [u32(member.length), u32(member.length), Buffer.from([3]), u32(crc32(member)), u32(0x21)]
  const file = [...sizes, Buffer.from([20, 0x30]), u16(name.length), u32(0o100644), name]
  const main = block(0x73, encryptedList ? 0x80 : 0, [Buffer.alloc(6)])
  return Buffer.concat([
    Buffer.from('Rar!\x1a\x07\x00', 'latin1'),
    main,
    block(0x74, 0x8000, file, member),
    block(0x7b, 0x4000, []),
  ])
}

export function newRar5({ encryptedList = false, encryptedFile = false } = {}): Buffer {
  const name = Buffer.from('eicar.com')
  const block = (body: Buffer[], data = Buffer.alloc(0)) => {
    const bytes = Buffer.concat(body)
    const head = Buffer.concat([vint(bytes.length), bytes])
    return Buffer.concat([u32(crc32(head)), head, data])
  }
  // A record of another kind, and one of encryption.
  const extra = Buffer.from(encryptedFile ? [2, 3, 0, 36, 1, 0, 0, 4, ...Buffer.alloc(32)] : [])
  const flags = encryptedFile ? [vint(3), vint(extra.length)] : [vint(2)]
  const sizes = [vint(2), ...flags, vint(member.length), vint(4), vint(member.length), vint(0o100644)]
  const file = [...sizes, u32(crc32(member)), vint(0), vint(1), vint(name.length), name, extra]
  const first = encryptedList
    ? [vint(4), vint(0), vint(0), vint(0), Buffer.from([15]), Buffer.alloc(16)]
    : [1, 0, 0].map(vint)
  const blocks = [block(first), block(file, member), block([5, 0, 0].map(vint))]
  return Buffer.concat([Buffer.from('Rar!\x1a\x07\x01\x00', 'latin1'), ...blocks])
}

/** A tar with one member for each name. */
export function newTar(names: string[], data: Buffer = member, { type = '0', link = '' } = {}): Buffer {
  const blocks = names.flatMap((name) => {
    const head = Buffer.alloc(512)
    const bytes = type === '0' ? data : Buffer.alloc(0)
    head.write(name, 0)
    head.write('0000644\x000000000\x000000000\0', 100)
    head.write(`${bytes.length.toString(8).padStart(11, '0')}\0${'0'.repeat(11)}\0        ${type}${link}`, 124)
    head.write('ustar\x0000', 257)
    const sum = head.reduce((total, byte) => total + byte, 0)
    head.write(`${sum.toString(8).padStart(6, '0')}\0 `, 148)
    return [head, bytes, Buffer.alloc((512 - (bytes.length % 512)) % 512)]
  })
  return Buffer.concat([...blocks, Buffer.alloc(1024)])
}

const u16 = (value: number) => Buffer.from([value & 255, value >>> 8])
const u64 = (value: number) => Buffer.concat([u32(value % 2 ** 32), u32(Math.floor(value / 2 ** 32))])
function u32(value: number): Buffer {
  const bytes = Buffer.alloc(4)
  bytes.writeUInt32LE(value >>> 0, 0)
  return bytes
}
function vint(value: number): Buffer {
  const bytes: number[] = []
  for (let rest = value; ; rest >>>= 7) {
    if (rest < 128) return Buffer.from([...bytes, rest])
    bytes.push((rest & 127) | 128)
  }
}

export const newBudget = (): UnpackBudget => ({ members: 10_000, bytes: 100_000_000 })

/** Unpacks every member whole into memory. */
export async function unpackAll(
  unpacker: Unpacker,
  archive: Buffer,
  { spooled = false, budget = newBudget() }: { spooled?: boolean; budget?: UnpackBudget } = {},
) {
  const given: { path: string; bytes: Buffer }[] = []
  const doubts = await unpacker.unpack(newContent(archive, { spooled }), {
    budget,
    work: { signal: AbortSignal.timeout(60_000) },
    async take({ path, bytes }) {
      const pieces: Buffer[] = []
      for await (const piece of bytes) pieces.push(piece)
      given.push({ path, bytes: Buffer.concat(pieces) })
    },
  })
  return { given, doubts }
}

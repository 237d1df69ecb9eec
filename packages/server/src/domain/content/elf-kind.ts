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

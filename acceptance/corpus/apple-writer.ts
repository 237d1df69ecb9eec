/** Checksum of BinHex and MacBinary: CRC-16 with polynomial 0x1021 and initial value 0. */
function checksum(bytes: Buffer): Buffer {
  let value = 0
  for (const byte of bytes) {
    value ^= byte << 8
    for (let bit = 0; bit < 8; bit++) value = ((value << 1) ^ (value & 0x8000 ? 0x1021 : 0)) & 0xffff
  }
  const result = Buffer.alloc(2)
  result.writeUInt16BE(value)
  return result
}

const number = (value: number) => {
  const bytes = Buffer.alloc(4)
  bytes.writeUInt32BE(value)
  return bytes
}

/** Writes AppleSingle, or the header file of AppleDouble, with the data as the entry of a kind. */
export function writeAppleFile(magic: number, kind: number, data: Buffer): Buffer {
  const count = Buffer.from([0, 1])
  return Buffer.concat([
    number(magic),
    number(0x20000),
    Buffer.alloc(16),
    count,
    number(kind),
    number(38),
    number(data.length),
    data,
  ])
}

/** Writes MacBinary II with a data fork only. */
export function writeMacBinary(data: Buffer, name = 'payload.com'): Buffer {
  const header = Buffer.alloc(128)
  header.writeUInt8(name.length, 1)
  header.write(`${name}`, 2, 'latin1')
  header.write('APPL????', 65, 'latin1')
  header.writeUInt32BE(data.length, 83)
  header.writeUInt8(129, 122)
  header.writeUInt8(129, 123)
  checksum(header.subarray(0, 124)).copy(header, 124)
  return Buffer.concat([header, data, Buffer.alloc((128 - (data.length % 128)) % 128)])
}

const alphabet = '!"#$%&\'()*+,-012345689@ABCDEFGHIJKLMNPQRSTUVXYZ[`abcdefhijklmpqr'

/** Writes BinHex 4.0 with a data fork only. */
export function writeBinHex(data: Buffer, name = 'payload.com'): Buffer {
  const header = Buffer.concat([
    Buffer.from([name.length]),
    Buffer.from(`${name}\0TEXT????\0\0`, 'latin1'),
    number(data.length),
    number(0),
  ])
  const empty = Buffer.alloc(0)
  const bytes = Buffer.concat([header, data, empty].flatMap((part) => [part, checksum(part)]))
  // The byte 0x90 announces a run, and stands for itself when a zero follows.
  const escaped = Buffer.from([...bytes].flatMap((byte) => (byte === 0x90 ? [0x90, 0] : [byte])))
  const bits = [...escaped].map((byte) => byte.toString(2).padStart(8, '0')).join('')
  const text = (bits.match(/.{1,6}/g) ?? []).map((group) => alphabet[Number.parseInt(group.padEnd(6, '0'), 2)]).join('')
  const lines = `:${text}:`.match(/.{1,64}/g) ?? []
  return Buffer.from(`(This file must be converted with BinHex 4.0)\n\n${lines.join('\n')}\n`)
}

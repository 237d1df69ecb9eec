/** A message, as its encoded fields in their order. */
export type Message = Buffer[]

/** A whole number that is not negative, or is and takes ten bytes. */
export function newInt(field: number, value: number | bigint): Buffer {
  return Buffer.concat([newVarint(field << 3), newVarint(BigInt.asUintN(64, BigInt(value)))])
}

export function newFloat(field: number, value: number): Buffer {
  const bytes = Buffer.alloc(4)
  bytes.writeFloatLE(value)
  return Buffer.concat([newVarint((field << 3) | 5), bytes])
}

export function newBytes(field: number, value: Uint8Array): Buffer[] {
  return [
    newVarint((field << 3) | 2),
    newVarint(value.length),
    Buffer.from(value.buffer, value.byteOffset, value.length),
  ]
}

export const newText = (field: number, value: string): Buffer => Buffer.concat(newBytes(field, Buffer.from(value)))

export function newMessage(field: number, message: Message): Buffer[] {
  const length = message.reduce((sum, { length }) => sum + length, 0)
  return [newVarint((field << 3) | 2), newVarint(length), ...message]
}

function newVarint(value: number | bigint): Buffer {
  const bytes: number[] = []
  let rest = BigInt(value)
  while (rest > 127n) {
    bytes.push(Number(rest & 127n) | 128)
    rest >>= 7n
  }
  return Buffer.from([...bytes, Number(rest)])
}

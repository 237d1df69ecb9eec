/**
 * What goes over the pipe between the service and a process that works for it. Each request is a header (length, JSON),
 * then chunks (length, bytes) up to `endOfBody` or `abandoned`; each has exactly one answer (length, JSON). Lengths are
 * 32 bits, little end first. A request with a body tells its length as `bytes`.
 */
export const endOfBody = 0
export const abandoned = 0xffff_ffff
/** A length beyond these is no length but a fault of ours. */
export const maxHeaderBytes = 65_536
export const maxAnswerBytes = 64 * 1024 * 1024

export function toFrame(value: object): Buffer {
  const json = Buffer.from(JSON.stringify(value))
  return Buffer.concat([toLength(json.length), json])
}

export function toLength(bytes: number): Buffer {
  const length = Buffer.allocUnsafe(4)
  length.writeUInt32LE(bytes)
  return length
}

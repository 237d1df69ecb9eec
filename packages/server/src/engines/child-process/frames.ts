/**
 * The protocol between the service and its child processes, over one socket (file descriptor 3 of the child). A frame is
 * one byte of kind, the length of the payload in 32 bits (little-endian), and the payload.
 *
 * The service sends `request` (JSON), then the body as `data` frames, then `end`, or `abandon` when it cannot send the
 * rest. The child sends exactly one `answer` (JSON) to each request. The unpacker sends more frames before it: `read`
 * asks for a range of the container, which the service sends as one `data` frame; `open` (a path), `data` and `end`
 * give a member.
 */
export const frameKinds = { request: 1, data: 2, end: 3, abandon: 4, answer: 5, open: 6, read: 7 } as const

export type FrameKind = keyof typeof frameKinds
/** `answer` is the parsed payload of a frame of that kind. */
export type Frame = { kind: number; payload: Buffer; answer?: unknown }

export const frameHeadBytes = 5
/** Larger lengths are a fault of the sender. Bodies are bounded by the length that their request announces. */
export const maxRequestBytes = 65_536
export const maxAnswerBytes = 64 * 1024 * 1024
export const maxDataBytes = 4 * 1024 * 1024

export function toFrameHead(kind: FrameKind, payloadBytes: number): Buffer {
  const head = Buffer.allocUnsafe(frameHeadBytes)
  head[0] = frameKinds[kind]
  head.writeUInt32LE(payloadBytes, 1)
  return head
}

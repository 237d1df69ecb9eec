/** The parts of one chunk of a body. */
export const toChunk = (bytes: Buffer): Buffer[] => [
  Buffer.from(`${bytes.length.toString(16)}\r\n`),
  bytes,
  Buffer.from('\r\n'),
]

export const lastChunk = '0\r\n\r\n'

/** The last chunk of a preview that holds the whole body. */
export const lastChunkOfWhole = '0; ieof\r\n\r\n'

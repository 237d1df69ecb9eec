/** The parts of one chunk of a body. */
export const toChunk = (...pieces: Buffer[]): Buffer[] => {
  const bytes = pieces.reduce((sum, piece) => sum + piece.length, 0)
  return [Buffer.from(`${bytes.toString(16)}\r\n`), ...pieces, lineEnd]
}

const lineEnd = Buffer.from('\r\n')

export const lastChunk = Buffer.from('0\r\n\r\n')

/** The last chunk of a preview that holds the whole body. */
export const lastChunkOfWhole = Buffer.from('0; ieof\r\n\r\n')

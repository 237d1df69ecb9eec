import { countSkippedBytes } from '../../../../domain/content/container.ts'
import { headBytes } from '../../../../domain/content/content.ts'
import { hasSignature, type Reader } from '../reader.ts'

/** The name of the table in which the program of SQLite archives compressed files. */
const archiveTables = ['sqlar', 'SQLAR'].map((name) => Buffer.from(name))
const database = Buffer.from('SQLite format 3\0')

/** Gives content that ClamAV would skip without the bytes by which ClamAV tells the format. */
export const skippedReader: Reader = {
  name: 'formats that ClamAV skips',
  recognizes: (source) => countSkippedBytes(source.read(0, headBytes)) !== undefined,
  async read(source, members) {
    const start = countSkippedBytes(source.read(0, headBytes)) ?? 0
    const path = `[bytes ${start} to ${source.bytes}]`
    await members.give({ path, pieces: source.pieces(start, source.bytes) })
    const isArchive = hasSignature(source, database) && archiveTables.some((name) => source.find(name, 0) !== -1)
    return { accounted: [{ start: 0, end: source.bytes }], doubts: isArchive ? ['UnsupportedContainer'] : [] }
  },
}

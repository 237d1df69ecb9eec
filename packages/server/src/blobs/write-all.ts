import type { FileHandle } from 'node:fs/promises'

/** A disk that is almost full takes a part of it and says nothing: content with a gap must not be taken for stored. */
export async function writeAll(file: FileHandle, batch: Buffer[], place?: number): Promise<void> {
  const bytes = batch.reduce((sum, { length }) => sum + length, 0)
  const { bytesWritten } = await file.writev(batch, place)
  if (bytesWritten !== bytes) throw new Error(`The disk took ${bytesWritten} of ${bytes} bytes`)
}

import type { FileHandle } from 'node:fs/promises'
import { toRoomProblem } from './disk-room.ts'

export const countBytes = (batch: Buffer[]): number => batch.reduce((sum, { length }) => sum + length, 0)

/** A disk that is almost full takes a part of it and says nothing. It is given the rest, and then says so. */
export async function writeAll(file: FileHandle, batch: Buffer[], place?: number): Promise<void> {
  try {
    const { bytesWritten } = await file.writev(batch, place)
    if (bytesWritten < countBytes(batch)) await writeRest(file, Buffer.concat(batch), bytesWritten, place)
  } catch (error) {
    throw toRoomProblem(error)
  }
}

async function writeRest(file: FileHandle, whole: Buffer, from: number, place: number | undefined) {
  for (let at = from; at < whole.length; ) {
    const { bytesWritten } = await file.write(whole, at, whole.length - at, place === undefined ? null : place + at)
    // Content with a gap must not be taken for stored.
    if (bytesWritten === 0) throw new Error(`The disk took ${at} of ${whole.length} bytes`)
    at += bytesWritten
  }
}

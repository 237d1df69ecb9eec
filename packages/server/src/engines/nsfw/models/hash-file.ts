import { createHash } from 'node:crypto'
import { createReadStream } from 'node:fs'
import { stat } from 'node:fs/promises'
import { pipeline } from 'node:stream/promises'

export async function hashFile(path: string): Promise<string> {
  const hash = createHash('sha256')
  await pipeline(createReadStream(path, { highWaterMark: 1 << 20 }), hash)
  return hash.digest('hex')
}

/** Undefined when no file can be read there. */
export async function findChecksum(path: string): Promise<{ bytes: number; sha256: string } | undefined> {
  try {
    const { size } = await stat(path)
    return { bytes: size, sha256: await hashFile(path) }
  } catch {
    return undefined
  }
}

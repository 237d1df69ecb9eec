import { hash, subtle } from 'node:crypto'
import type { Content } from '../domain/content/content.ts'
import { headBytes } from '../domain/content/media-type.ts'

const asyncHashBytes = 128 * 1024
/** Above this also what is seldom wanted is hashed at once, on another thread. */
const lazyHashBytes = 1024 * 1024

/** Content that is never written anywhere. `onRelease` says that its memory may be used for other things. */
export async function newMemoryContent(bytes: Buffer, onRelease: () => void): Promise<Content> {
  const [sha256, sha1] = await Promise.all([
    toSha256(bytes),
    bytes.length > lazyHashBytes ? digest('SHA-1', bytes) : undefined,
  ])
  let whole: Buffer | undefined = bytes
  const getWhole = () => {
    if (whole === undefined) throw new Error('The content was released')
    return whole
  }
  return {
    bytes: bytes.length,
    head: bytes.subarray(0, headBytes),
    // Seldom wanted: see describe.ts.
    get sha1() {
      return sha1 ?? hash('sha1', getWhole())
    },
    sha256,
    get whole() {
      return whole
    },
    async *read(start = 0, end) {
      if (getWhole().length > start) yield getWhole().subarray(start, end)
    },
    async release() {
      if (whole !== undefined) onRelease()
      whole = undefined
    },
  }
}

/** Of more than a little on another thread: a megabyte would hold up all other requests for almost a millisecond. */
async function toSha256(bytes: Buffer): Promise<string> {
  return bytes.length < asyncHashBytes ? hash('sha256', bytes) : digest('SHA-256', bytes)
}

async function digest(name: string, bytes: Buffer): Promise<string> {
  return Buffer.from(await subtle.digest(name, bytes as Uint8Array<ArrayBuffer>)).toString('hex')
}

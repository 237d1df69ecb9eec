/** Where a file is. Names on the disk are bytes, and need not be text: `raw` opens the file, `shown` is for people. */
export type Place = { shown: string; raw: string | Buffer }

/** In this encoding a string holds the bytes of a name unchanged. Windows has names in UTF-16. */
export const nameEncoding: BufferEncoding = process.platform === 'win32' ? 'utf8' : 'latin1'

export const toPlace = (path: string): Place => ({ shown: path, raw: path })

/** `name` as it came from the directory, in `nameEncoding`. */
export function joinPlace({ shown, raw }: Place, name: string): Place {
  const slash = shown.endsWith('/') ? '' : '/'
  if (typeof raw === 'string' && (nameEncoding === 'utf8' || isAscii.test(name))) {
    const path = shown + slash + name
    return { shown: path, raw: path }
  }
  const bytes = Buffer.from(name, 'latin1')
  const text = bytes.toString('utf8')
  const isText = Buffer.from(text, 'utf8').equals(bytes)
  if (isText && typeof raw === 'string') return toPlace(shown + slash + text)
  return {
    shown: shown + slash + (isText ? text : showBytes(bytes)),
    raw: Buffer.concat([Buffer.from(raw), Buffer.from(slash), bytes]),
  }
}

const isAscii = /^[\x00-\x7f]*$/

/** What is no UTF-8 is shown byte by byte. */
const showBytes = (bytes: Buffer): string =>
  Array.from(bytes, (byte) => (byte < 0x80 ? String.fromCharCode(byte) : `\\x${byte.toString(16)}`)).join('')

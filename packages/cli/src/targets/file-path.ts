/** Path of a file. Names on disk are bytes that may not be valid text: `raw` opens the file, `display` is printed. */
export type FilePath = { display: string; raw: string | Buffer }

/** Encoding in which a string holds the bytes of a file name unchanged. Windows stores names as UTF-16. */
export const nameEncoding: BufferEncoding = process.platform === 'win32' ? 'utf8' : 'latin1'

export const toFilePath = (path: string): FilePath => ({ display: path, raw: path })

/** Appends a `name` that was read from the directory in `nameEncoding`. */
export function joinPath({ display, raw }: FilePath, name: string): FilePath {
  const slash = display.endsWith('/') ? '' : '/'
  if (typeof raw === 'string' && (nameEncoding === 'utf8' || isAscii.test(name))) {
    return toFilePath(display + slash + name)
  }
  const bytes = Buffer.from(name, 'latin1')
  const text = bytes.toString('utf8')
  const isText = Buffer.from(text, 'utf8').equals(bytes)
  if (isText && typeof raw === 'string') return toFilePath(display + slash + text)
  return {
    display: display + slash + (isText ? text : escapeBytes(bytes)),
    raw: Buffer.concat([Buffer.from(raw), Buffer.from(slash), bytes]),
  }
}

const isAscii = /^[\x00-\x7f]*$/

/** Shows a name that is not valid UTF-8 byte by byte. */
const escapeBytes = (bytes: Buffer): string =>
  Array.from(bytes, (byte) => (byte < 0x80 ? String.fromCharCode(byte) : `\\x${byte.toString(16)}`)).join('')

/** What a part of a form says of itself. With a filename, or as plain bytes, it is a file; else a text field. */
export type PartHeader = { name: string; filename: string | undefined; isFile: boolean; charset: string | undefined }

/** Undefined for a part that is no field of a form: without a name, or of another disposition. */
export function readPartHeader(text: string): PartHeader | undefined {
  const unfolded = /\n[ \t]/.test(text) ? text.replaceAll(/\r\n[ \t]+/g, ' ') : text
  const lines = unfolded.split('\r\n')
  const disposition = findHeader(lines, 'content-disposition')
  if (disposition === undefined || !/^form-data\s*(;|$)/i.test(disposition)) return undefined
  const params = readParams(disposition)
  const name = params.get('name')
  if (name === undefined) return undefined
  const filename = readExtended(params.get('filename*')) ?? params.get('filename')
  if (filename !== undefined) return { name, filename: toBaseName(filename), isFile: true, charset: undefined }
  const type = findHeader(lines, 'content-type') ?? ''
  return {
    name,
    filename,
    isFile: /^application\/octet-stream\s*(;|$)/i.test(type),
    charset: readParams(type).get('charset'),
  }
}

function findHeader(lines: string[], name: string): string | undefined {
  for (const line of lines) {
    const colon = line.indexOf(':')
    if (colon === name.length && line.slice(0, colon).toLowerCase() === name) return line.slice(colon + 1).trim()
  }
  return undefined
}

/** `; name="a"; filename=b`. The first of two alike counts. */
function readParams(value: string): Map<string, string> {
  const params = new Map<string, string>()
  for (const [, name = '', quoted, plain] of value.matchAll(
    /;\s*([^\s=;"]+)\s*=\s*(?:"((?:[^"\\]|\\.)*)"|([^\s;]*))/gs,
  )) {
    const key = name.toLowerCase()
    if (!params.has(key)) params.set(key, quoted === undefined ? (plain ?? '') : unescapeQuoted(quoted))
  }
  return params
}

/**
 * Browsers write a quote in a name as `%22`, others as `\"`. A backslash before anything else is one: Windows paths have
 * them, and nobody escapes them.
 */
const unescapeQuoted = (text: string) => text.replaceAll(/\\(["\\])/g, '$1')

/** `utf-8''na%C3%AFve.txt`; undefined when it cannot be read. */
function readExtended(value: string | undefined): string | undefined {
  const [, charset, encoded] = /^([\w-]+)'[\w-]*'(.*)$/s.exec(value ?? '') ?? []
  if (charset === undefined || encoded === undefined) return undefined
  try {
    const bytes = Buffer.from(
      encoded.replaceAll(/%([0-9a-f]{2})/gi, (_, hex) => String.fromCharCode(Number.parseInt(hex, 16))),
      'latin1',
    )
    return new TextDecoder(charset).decode(bytes)
  } catch {
    return undefined
  }
}

/** Some send the whole path of the file on their own machine. */
const toBaseName = (filename: string) =>
  filename.slice(Math.max(filename.lastIndexOf('/'), filename.lastIndexOf('\\')) + 1)

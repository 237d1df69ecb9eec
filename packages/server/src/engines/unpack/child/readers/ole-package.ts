/** Where the embedded file lies in the data of a package. */
export type PackageRange = { name: string; start: number; end: number }

const maxText = 4096

/**
 * Finds the file in the native data of a package, which begins with a label and two paths; `at` is the position of the
 * mark 2 before them. Undefined when the data has another form.
 */
export function findPackagedFile(head: Buffer, at: number): PackageRange | undefined {
  if (head.length < at + 8 || head.readUInt16LE(at) !== 2) return undefined
  const label = readText(head, at + 2)
  const path = label === undefined ? undefined : readText(head, label.end)
  if (label === undefined || path === undefined || path.end + 8 > head.length) return undefined
  // Two numbers precede the length of the second path.
  const pathAt = path.end + 8
  const sizeAt = pathAt + head.readUInt32LE(path.end + 4)
  if (sizeAt + 4 > head.length) return undefined
  const start = sizeAt + 4
  return { name: label.text, start, end: start + head.readUInt32LE(sizeAt) }
}

function readText(head: Buffer, at: number): { text: string; end: number } | undefined {
  const end = head.indexOf(0, at)
  if (end === -1 || end - at > maxText) return undefined
  return { text: head.toString('latin1', at, end), end: end + 1 }
}

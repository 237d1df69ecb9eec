import { SourceError } from './source-error.ts'

const forms = [
  // sha256sum: the hash, a blank, a blank or an asterisk, the name.
  /^(?<hash>[0-9a-f]{64})[ \t]+\*?(?<name>.+)$/i,
  // sha256sum --tag, and BSD.
  /^SHA256 ?\((?<name>.+)\) ?= ?(?<hash>[0-9a-f]{64})$/i,
]

/** Finds the SHA-256 of a file in a list such as SHA256SUMS. A list that is one hash without a name is for any file. */
export function findChecksum(list: string, fileName: string): string {
  const lines = list
    .split(/\r?\n/)
    .map((line) => line.trim())
    .filter((line) => line !== '' && !line.startsWith('#'))
  const [only = ''] = lines
  if (lines.length === 1 && /^[0-9a-f]{64}$/i.test(only)) return only.toLowerCase()
  const hashes = lines.flatMap((line) => {
    const found = forms.map((form) => form.exec(line)?.groups).find((groups) => groups !== undefined)
    return found?.name?.split('/').at(-1) === fileName ? [found.hash?.toLowerCase() ?? ''] : []
  })
  const [hash] = hashes
  if (hash === undefined) throw new SourceError(`The list of checksums does not name ${fileName}.`)
  if (new Set(hashes).size > 1) throw new SourceError(`The list of checksums has several hashes of ${fileName}.`)
  return hash
}

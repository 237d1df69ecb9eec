import { inflateRawSync } from 'node:zlib'
import type { Source } from '../source.ts'
import type { LocalEntry, ZipEntry } from './zip-records.ts'

const maxPackedBytes = 2 ** 20
const maxManifestBytes = 8 * 2 ** 20
const manifestName = 'META-INF/manifest.xml'
const encryptionMark = 'encryption-data'

/** Whether a member is the manifest of an OpenDocument file and names parts that are encrypted with a password. */
export function namesEncryptedParts(
  source: Source,
  entry: ZipEntry & { packedBytes: number },
  local: LocalEntry,
): boolean {
  if (entry.path !== manifestName || entry.packedBytes > maxPackedBytes) return false
  const packed = source.read(local.dataAt, local.dataAt + entry.packedBytes)
  try {
    const manifest = entry.method === 8 ? inflateRawSync(packed, { maxOutputLength: maxManifestBytes }) : packed
    return manifest.includes(encryptionMark)
  } catch {
    return false
  }
}

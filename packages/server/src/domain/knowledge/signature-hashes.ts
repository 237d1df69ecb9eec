import type { HashListStore } from '../ports/hash-list-store.ts'
import type { SignatureStore } from '../ports/signature-store.ts'
import { type HashLine, type HashReader, toName } from './hash-csv.ts'
import { importHashes, NoHashes } from './import-hashes.ts'

/**
 * Returns a function that makes the SHA-256 signatures of a file a list of bad hashes, or removes its list when the
 * file is gone, or is not used in scans. Engines find these hashes in scans; the list is for results of before.
 */
export function makeSignatureHashes(deps: {
  signatures: Pick<SignatureStore, 'listFiles' | 'readContent'>
  hashLists: HashListStore
  /** False with a clamd that the operator runs: it does not load the files, so scans do not find their hashes. */
  isUsedInScans: boolean
}) {
  const { signatures, hashLists, isUsedInScans } = deps
  return async (name: string): Promise<void> => {
    const file = (await signatures.listFiles()).find((other) => other.name === name)
    const list = { name, verdict: 'bad', origin: 'signatures', createdBy: 'signatures' } as const
    try {
      if (file === undefined || !isUsedInScans) await hashLists.remove('signatures', name)
      else await importHashes({ store: hashLists, reader: signatureReader }, list, signatures.readContent(file))
    } catch (error) {
      if (!(error instanceof NoHashes)) throw error
      await hashLists.remove('signatures', name)
    }
  }
}

/** ClamAV adds this to the names of signatures that are not its own. */
const suffix = '.UNOFFICIAL'

/** Reads lines of ClamAV's hash signatures: `hash:size:name`. Lines with other hashes are no rows. */
export const signatureReader: HashReader = {
  readLine(line): HashLine {
    const [hash = '', , text] = line.trim().split(':')
    if (!/^[0-9a-f]{64}$/i.test(hash)) return undefined
    const name = toName(text)
    return { sha256: hash, name: name === null ? null : `${name}${suffix}` }
  },
  findForm: () => ({ separator: ':'.charCodeAt(0), hash: 0, name: 2, suffix }),
}

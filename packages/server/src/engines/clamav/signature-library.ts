import type { Logger } from '../../runtime/logger.ts'
import {
  countSignatures,
  findReleaseDate,
  listPlacedFiles,
  listSignatureFiles,
  placeSignatureFiles,
  type SignatureDirs,
  type SignatureFile,
  toDigest,
} from './signature-files.ts'
import type { Trial } from './trial.ts'

export type LoadedSignatures = { digest: string; releasedAt: Date; count: number }

/** Which signature files clamd gets: all there are, without those that it could not load. */
export function makeSignatureLibrary(deps: { dirs: SignatureDirs; databaseDir: string; trial: Trial; log: Logger }) {
  const { dirs, databaseDir, trial, log } = deps
  /** By path; a file is tried again when it has changed. */
  const refused = new Map<string, { version: string; reason: string }>()
  let placed: SignatureFile[] = []
  let loadable: SignatureFile[] = []

  return {
    /** Gives clamd what there is. True when that is not what it had. */
    place(): boolean {
      const before = toDigest(loadable)
      const files = listSignatureFiles(dirs)
      for (const [path, { version }] of refused) {
        if (!files.some((file) => file.path === path && toVersion(file) === version)) refused.delete(path)
      }
      placeSignatureFiles(files, new Set(refused.keys()), databaseDir)
      placed = files.filter(({ path }) => !refused.has(path))
      loadable = listPlacedFiles(databaseDir)
      return toDigest(loadable) !== before
    },
    /** Tries what is new since the last time. One by one only when all together do not load. */
    async tryNew() {
      const known = new Set(placed.map(toVersion))
      const fresh = listSignatureFiles(dirs).filter(
        (file) => !known.has(toVersion(file)) && refused.get(file.path)?.version !== toVersion(file),
      )
      if (fresh.length > 0 && (await trial.findFault(fresh)) !== undefined) await tryEach(fresh)
    },
    /** For a clamd that does not start: finds the files to blame. True when there are any. */
    async tryAll(): Promise<boolean> {
      const before = refused.size
      await tryEach(placed.filter(({ path }) => !path.startsWith(dirs.shipped)))
      return refused.size > before
    },
    describe: (): LoadedSignatures => ({
      digest: toDigest(loadable),
      releasedAt: findReleaseDate(placed, dirs),
      count: loadable.reduce((sum, file) => sum + countSignatures(file), 0),
    }),
    listRefused: () => [...refused].map(([path, { reason }]) => ({ path, reason })),
  }

  async function tryEach(files: SignatureFile[]) {
    for (const file of files) {
      const reason = await trial.findFault([file])
      if (reason === undefined) continue
      refused.set(file.path, { version: toVersion(file), reason })
      log.error({ file: file.path, reason }, 'a signature file cannot be loaded; the others are in use')
    }
  }
}

const toVersion = ({ path, bytes, changedMs }: SignatureFile) => `${path} ${bytes} ${changedMs}`

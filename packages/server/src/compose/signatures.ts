import { copyFileSync, mkdirSync, readdirSync, renameSync, rmSync, statSync } from 'node:fs'
import { basename, extname, join, resolve } from 'node:path'
import type { Config } from '../config/load-config.ts'
import { OperatorMistake } from '../domain/problem.ts'
import { findProgram } from '../engines/clamav/installation.ts'
import { makeChoices } from '../engines/clamav/open-own-clamd.ts'
import {
  findReleaseDate,
  isOfficialKind,
  isSignatureKind,
  listSignatureFiles,
  type SignatureFile,
} from '../engines/clamav/signature-files.ts'
import { makeTrial } from '../engines/clamav/signature-library.ts'
import { checkYaraFile } from '../engines/yara/load-rules.ts'
import { toSignatureDirs } from './malware.ts'

/** The operator's hand on the signatures. Files are tried before they are put in place; a running service notices. */
export function makeSignatures(config: Config) {
  const dirs = toSignatureDirs(config)

  return {
    /** Adds a file of the operator's own; the one of the same name is replaced. */
    async add(path: string): Promise<SignatureFile> {
      if (isOfficialKind(path)) throw new OperatorMistake(`${path} is a database of ClamAV's: use signatures import.`)
      requireKind(path)
      await requireLoadable(path)
      return place(path, isYara(path) ? dirs.yara : dirs.own)
    },
    /** Takes over a directory such as /var/lib/clamav, or single files of it. */
    async import(path: string): Promise<SignatureFile[]> {
      const files = listImportable(path)
      // All are tried before the first is put in place: all of them, or none.
      for (const file of files) await requireLoadable(file)
      return files.map((file) =>
        place(file, isYara(file) ? dirs.yara : isOfficialKind(file) ? dirs.official : dirs.own),
      )
    },
    remove(name: string) {
      const target = [dirs.own, dirs.official, dirs.yara].map((dir) => join(dir, basename(name))).find(isFile)
      if (target === undefined) throw new OperatorMistake(`There is no signature file ${name} of yours.`)
      rmSync(target)
    },
    list() {
      const files = listSignatureFiles(dirs)
      const rules = listRules()
      return { files: [...files, ...rules], releasedAt: findReleaseDate(files, dirs) }
    },
  }

  async function requireLoadable(path: string) {
    const fault = isYara(path) ? await checkYaraFile(path) : await tryWithClamd(path)
    if (fault !== undefined) throw new OperatorMistake(`${path} cannot be loaded: ${fault}`)
  }

  async function tryWithClamd(path: string): Promise<string | undefined> {
    const binary = findProgram('clamd')
    if (binary === undefined) {
      throw new OperatorMistake('There is no clamd on this machine to try the file with. Install ClamAV first.')
    }
    const dataDir = resolve(config.dataDir)
    const options = { binary, dataDir, scratchMegabytes: 64, acceptsDisk: config.scratch === 'disk' }
    const { user, choose } = makeChoices(options)
    return makeTrial({ binary, dataDir, user, chooseSandbox: choose }).findFault([toFile(path)])
  }

  function listRules(): SignatureFile[] {
    try {
      return readdirSync(dirs.yara)
        .filter(isYara)
        .map((name) => toFile(join(dirs.yara, name)))
    } catch {
      return []
    }
  }
}

/** Under another name first: whoever watches the directory sees whole files only. */
function place(path: string, dir: string): SignatureFile {
  mkdirSync(dir, { recursive: true })
  const target = join(dir, basename(path))
  const draft = join(dir, `.${basename(path)}.part`)
  copyFileSync(path, draft)
  renameSync(draft, target)
  return toFile(target)
}

function toFile(path: string): SignatureFile {
  const { size, mtimeMs } = statSync(path)
  return { path, loadedAs: basename(path), bytes: size, changedMs: mtimeMs }
}

function listImportable(path: string): string[] {
  const found = statSync(path, { throwIfNoEntry: false })
  if (found === undefined) throw new OperatorMistake(`${path} does not exist.`)
  if (!found.isDirectory()) {
    requireKind(path)
    return [path]
  }
  const files = readdirSync(path)
    .filter((name) => isSignatureKind(name) && isFile(join(path, name)))
    .map((name) => join(path, name))
  if (files.length === 0) throw new OperatorMistake(`There are no signature files in ${path}.`)
  return files
}

function requireKind(path: string) {
  if (!isFile(path)) throw new OperatorMistake(`${path} is not a file.`)
  if (!isSignatureKind(path)) {
    throw new OperatorMistake(
      `${path} is no signature file: its name must end in .ndb, .ldb, .hdb, .hsb, .yar or the like.`,
    )
  }
}

const isYara = (file: string) => ['.yar', '.yara'].includes(extname(file).toLowerCase())
const isFile = (path: string) => statSync(path, { throwIfNoEntry: false })?.isFile() === true

import { randomUUID } from 'node:crypto'
import { constants, copyFileSync, mkdirSync, readdirSync, renameSync, rmSync, statSync } from 'node:fs'
import { basename, extname, join, resolve } from 'node:path'
import type { Config } from '../config/load-config.ts'
import { OperatorMistake } from '../domain/problem.ts'
import { findProgram } from '../engines/clamav/installation.ts'
import { makeSandboxChooser } from '../engines/clamav/open-own-clamd.ts'
import {
  findOfficialDate,
  isOfficialKind,
  isSignatureKind,
  listSignatureFiles,
  type SignatureFile,
} from '../engines/clamav/signature-files.ts'
import { makeTrial } from '../engines/clamav/signature-library.ts'
import { checkYaraFile } from '../engines/yara/load-rules.ts'
import { toSignatureDirs } from './malware.ts'

/**
 * Lists, adds, imports and removes signature files. New files are test-loaded first; a running service reloads them.
 */
export function makeSignatures(config: Config) {
  const dirs = toSignatureDirs(config)

  return {
    /** Adds a signature file of the operator; replaces one of the same name. */
    async add(path: string): Promise<SignatureFile> {
      if (isOfficialKind(path)) throw new OperatorMistake(`${path} is a ClamAV database: use signatures import.`)
      requireKind(path)
      await requireLoadable(path)
      return place(path, isYara(path) ? dirs.yara : dirs.own)
    },
    /** Imports all signature files of a directory such as /var/lib/clamav, or one file. */
    async import(path: string): Promise<SignatureFile[]> {
      const files = listImportable(path)
      // All files are test-loaded before the first is placed, so that either all are imported or none.
      for (const file of files) await requireLoadable(file)
      return files.map((file) =>
        place(file, isYara(file) ? dirs.yara : isOfficialKind(file) ? dirs.official : dirs.own),
      )
    },
    remove(name: string) {
      const target = [dirs.own, dirs.official, dirs.yara].map((dir) => join(dir, basename(name))).find(isFile)
      if (target === undefined) throw new OperatorMistake(`There is no added or imported signature file ${name}.`)
      rmSync(target)
    },
    list() {
      const files = listSignatureFiles(dirs)
      const rules = listRules()
      return { files: [...files, ...rules], officialAt: findOfficialDate(files) }
    },
  }

  async function requireLoadable(path: string) {
    const fault = isYara(path) ? await checkYaraFile(path) : await testWithClamd(path)
    if (fault !== undefined) throw new OperatorMistake(`${path} cannot be loaded: ${fault}`)
  }

  async function testWithClamd(path: string): Promise<string | undefined> {
    const binary = findProgram('clamd')
    if (binary === undefined) {
      throw new OperatorMistake('clamd is not installed, so the file cannot be test-loaded. Install ClamAV first.')
    }
    const dataDir = resolve(config.dataDir)
    const options = { binary, dataDir, scratchMegabytes: 64, acceptsDisk: config.scratch === 'disk' }
    const { user, chooseForDir } = makeSandboxChooser(options)
    return makeTrial({ binary, dataDir, user, chooseSandbox: chooseForDir }).findFault([toFile(path)])
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

/**
 * Copies under a temporary name and renames, because the service watches the directory and must see complete files
 * only.
 */
function place(path: string, dir: string): SignatureFile {
  mkdirSync(dir, { recursive: true })
  const target = join(dir, basename(path))
  // The user of freshclam can write to one of the directories: neither guess the name nor follow a link there.
  const draft = join(dir, `.${randomUUID()}.part`)
  copyFileSync(path, draft, constants.COPYFILE_EXCL)
  renameSync(draft, target)
  return toFile(target)
}

function toFile(path: string): SignatureFile {
  const { size, mtimeMs } = statSync(path)
  return { path, loadedAs: basename(path), bytes: size, changedMs: mtimeMs }
}

function listImportable(path: string): string[] {
  const stats = statSync(path, { throwIfNoEntry: false })
  if (stats === undefined) throw new OperatorMistake(`${path} does not exist.`)
  if (!stats.isDirectory()) {
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
      `${path} is not a signature file: its name must end in .ndb, .ldb, .hdb, .hsb, .yar or a similar extension.`,
    )
  }
}

const isYara = (file: string) => ['.yar', '.yara'].includes(extname(file).toLowerCase())
const isFile = (path: string) => statSync(path, { throwIfNoEntry: false })?.isFile() === true

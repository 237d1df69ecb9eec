import { randomUUID } from 'node:crypto'
import { constants, copyFileSync, mkdirSync, readdirSync, renameSync, rmSync, statSync } from 'node:fs'
import { readFile } from 'node:fs/promises'
import { basename, join, resolve } from 'node:path'
import type { Config } from '../config/load-config.ts'
import type { AuditLog } from '../domain/ports/operations.ts'
import type { SharedFile, SignatureStore } from '../domain/ports/source-store.ts'
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
import { isYaraFile } from '../engines/yara/rule-files.ts'
import { toSignatureDirs } from './malware.ts'

type Deps = {
  store: SignatureStore
  atomically: AuditLog['atomically']
  /** Brings the files of the database to this node after a change. */
  copyFiles(): Promise<void>
}
/** Writes a change to the audit log, in the transaction of the change. */
type Note = () => Promise<void>

/** `isOwn` is false of files that Assay ships and of those of sources, which cannot be removed one by one. */
type ListedFile = Pick<SignatureFile, 'path' | 'bytes' | 'changedMs'> & { isOwn: boolean; source: string | null }

/**
 * Lists, adds, imports and removes signature files, after a test in which they are loaded. The operator's own go to the
 * database, from which all nodes get them; ClamAV's databases go to the data directory of this node.
 */
export function makeSignatures(config: Config, { store, atomically, copyFiles }: Deps) {
  const dirs = toSignatureDirs(config)

  return {
    /** Adds a signature file of the operator; replaces one of the same name. */
    async add(path: string, note: Note): Promise<ListedFile[]> {
      if (isOfficialKind(path)) throw new OperatorMistake(`${path} is a ClamAV database: use signatures import.`)
      requireKind(path)
      requireStorable([path])
      await requireLoadable(path)
      return save([path], note)
    },
    /** Imports all signature files of a directory such as /var/lib/clamav, or one file. */
    async import(path: string, note: Note): Promise<ListedFile[]> {
      const files = listImportable(path)
      const official = files.filter(isOfficialKind)
      if (official[0] !== undefined && !config.roles.worker) throw new OperatorMistake(toWorkerAdvice(official[0]))
      const own = files.filter((file) => !isOfficialKind(file))
      // All files are checked and test-loaded before the first is placed, so that a bad one keeps out all of them.
      requireStorable(own)
      for (const file of files) await requireLoadable(file)
      const placed = official.map((file) => toListed(place(file, dirs.official), true))
      return [...placed, ...(await save(own, note))]
    },
    /** Removes a file from the database, or else from the data directory of this node. */
    async remove(name: string, note: Note) {
      const file = basename(name)
      const isRemoved = await atomically(async () => {
        const found = await store.removeFile(file)
        if (found) await note()
        return found
      })
      if (isRemoved) return copyFiles()
      const target = [dirs.own, dirs.official, dirs.yara].map((dir) => join(dir, file)).find(isFile)
      if (target === undefined) throw new OperatorMistake(`There is no added or imported signature file ${name}.`)
      rmSync(target)
      await note()
    },
    /** Lists the files of the database by name, and the files of this node by path. */
    async list() {
      const files = listSignatureFiles(dirs).filter(({ path }) => !path.startsWith(dirs.shared))
      const shipped = files.filter(({ path }) => path.startsWith(dirs.shipped))
      const own = [...files.filter((file) => !shipped.includes(file)), ...listRules(dirs.yara)]
      return {
        files: [
          ...shipped.map((file) => toListed(file, false)),
          ...own.map((file) => toListed(file, true)),
          ...(await store.listFiles()).map(toListedShared),
        ],
        officialAt: findOfficialDate(files),
      }
    },
  }

  async function save(paths: string[], note: Note): Promise<ListedFile[]> {
    const files = paths.map((path) => ({ name: basename(path), read: () => readFile(path) }))
    const saved = await atomically(async () => {
      const done = files.length === 0 ? [] : await store.saveFiles(files)
      await note()
      return done
    })
    await copyFiles()
    return saved.map(toListedShared)
  }

  function requireStorable(paths: string[]) {
    store.requireStorable(paths.map((path) => ({ name: basename(path), bytes: statSync(path).size })))
  }

  async function requireLoadable(path: string) {
    const fault = isYaraFile(path) ? await checkYaraFile(path) : await testWithClamd(config, path)
    if (fault !== undefined) throw new OperatorMistake(`${path} cannot be loaded: ${fault}`)
  }
}

async function testWithClamd(config: Config, path: string): Promise<string | undefined> {
  const binary = findProgram('clamd')
  if (binary === undefined) {
    throw new OperatorMistake(
      'clamd is not installed here, so the file cannot be test-loaded. Install ClamAV first, or add the file on another node.',
    )
  }
  const dataDir = resolve(config.dataDir)
  const options = { binary, dataDir, scratchMegabytes: 64, acceptsDisk: config.scratch === 'disk' }
  const { user, chooseForDir } = makeSandboxChooser(options)
  return makeTrial({ binary, dataDir, user, chooseSandbox: chooseForDir }).findFault([toFile(path)])
}

function listRules(dir: string): SignatureFile[] {
  try {
    return readdirSync(dir)
      .filter(isYaraFile)
      .map((name) => toFile(join(dir, name)))
  } catch {
    return []
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

const toListed = ({ path, bytes, changedMs }: SignatureFile, isOwn: boolean): ListedFile => ({
  path,
  bytes,
  changedMs,
  isOwn,
  source: null,
})

const toListedShared = ({ name, bytes, changedAt, source }: SharedFile): ListedFile => ({
  path: name,
  bytes,
  changedMs: changedAt.getTime(),
  isOwn: source === null,
  source,
})

const toWorkerAdvice = (file: string) =>
  `${file} is a ClamAV database, which every worker keeps in its own data directory, and this node runs no engines. ` +
  'Run npm run assay -- signatures import on each worker.'

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

const isFile = (path: string) => statSync(path, { throwIfNoEntry: false })?.isFile() === true

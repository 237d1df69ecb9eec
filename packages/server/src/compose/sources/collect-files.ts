import { createHash, randomUUID } from 'node:crypto'
import { createWriteStream } from 'node:fs'
import { mkdir } from 'node:fs/promises'
import { basename, join } from 'node:path'
import { Readable } from 'node:stream'
import { pipeline } from 'node:stream/promises'
import type { Content } from '../../domain/content/content.ts'
import type { ContentStore } from '../../domain/ports/content-store.ts'
import type { Doubt, UnpackBudget, Unpacker } from '../../domain/ports/engines.ts'
import { isSourceFile, SourceError } from '../../domain/sources.ts'

const megabyte = 1024 * 1024
/** All members of an archive, also those that are not taken. */
const unpackLimits = { members: 50_000, bytes: 1024 * megabyte }
/** Signature files that are taken. The store has a limit of its own for all files together. */
const maxFiles = 3000
const maxTakenBytes = 200 * megabyte
const maxNameLength = 100

/** A file of a source in a directory of its own. `name` is that in the signature store. */
export type SourceFile = { name: string; path: string }

type Deps = { contents: ContentStore; unpacker: Unpacker; signal: AbortSignal; limits?: UnpackBudget | undefined }

/**
 * Writes the signature files of a download to `dir`: the download itself, or the members of a zip or tar.gz, which the
 * confined unpacker opens. The content decides which of them it is. Throws a `SourceError` for an archive that is not
 * whole, too large or without signature files.
 */
export async function collectFiles(
  content: Content,
  { source, fileName, dir }: { source: string; fileName: string; dir: string },
  deps: Deps,
): Promise<SourceFile[]> {
  const taken = newTaken(source, dir)
  await mkdir(dir, { recursive: true, mode: 0o700 })
  const budget: UnpackBudget = { ...(deps.limits ?? unpackLimits) }
  const kind = findKind(content.head)
  if (kind === 'file') await taken.add(fileName, content.read())
  else if (kind === 'gzip') await openGzip(content, { fileName, taken, budget }, deps)
  else await openArchive(content, { taken, budget }, deps)
  const files = taken.list()
  if (files.length === 0) {
    throw new SourceError(
      kind === 'file'
        ? `${fileName} is neither an archive nor a signature file that sources may bring. Set its name with --file-name.`
        : 'The archive has no signature files that sources may bring.',
    )
  }
  return files
}

function findKind(head: Buffer): 'zip' | 'gzip' | 'tar' | 'file' {
  if (head.subarray(0, 4).equals(Buffer.from('PK\x03\x04'))) return 'zip'
  if (head.subarray(0, 2).equals(Buffer.from([0x1f, 0x8b]))) return 'gzip'
  return head.toString('latin1', 257, 262) === 'ustar' ? 'tar' : 'file'
}

type Opening = { taken: Taken; budget: UnpackBudget }

async function openArchive(content: Content, { taken, budget }: Opening, deps: Deps) {
  const doubts = await deps.unpacker.unpack(content, {
    take: ({ path, bytes }) => taken.add(path, bytes),
    budget,
    work: { signal: deps.signal },
  })
  requireWhole(doubts)
}

/** Unpacks a compressed file: an archive, or one signature file. */
async function openGzip(content: Content, { fileName, ...opening }: Opening & { fileName: string }, deps: Deps) {
  let inner: Content | undefined
  try {
    const doubts = await deps.unpacker.unpack(content, {
      async take({ bytes }) {
        // A file of several parts is given part by part and as one; the last of them is the whole.
        await inner?.release()
        inner = undefined
        inner = await store(bytes, deps.contents)
      },
      budget: opening.budget,
      work: { signal: deps.signal },
    })
    requireWhole(doubts)
    if (inner === undefined) throw new SourceError('The archive is empty.')
    const isTar = findKind(inner.head) === 'tar'
    if (isTar) await openArchive(inner, opening, deps)
    else await opening.taken.add(fileName.replace(/\.gz$/i, ''), inner.read())
  } finally {
    await inner?.release()
  }
}

async function store(bytes: AsyncIterable<Buffer>, contents: ContentStore): Promise<Content> {
  const writer = contents.newWriter()
  try {
    for await (const chunk of bytes) await writer.write(Buffer.from(chunk))
    return await writer.finish()
  } catch (error) {
    await writer.abort()
    throw error
  }
}

const faults: Record<Doubt, string> = {
  EncryptedContent: 'The archive is encrypted.',
  UnsupportedContainer: 'The archive is damaged or incomplete.',
  ScanLimitExceeded: 'The archive has too many members, or too many bytes.',
}

function requireWhole([doubt]: Doubt[]) {
  if (doubt !== undefined) throw new SourceError(faults[doubt])
}

/** The files that have been taken, with their hashes. */
function newTaken(source: string, dir: string) {
  const files = new Map<string, SourceFile & { hash: string }>()
  let bytes = 0

  async function* count(pieces: AsyncIterable<Buffer>, hash: ReturnType<typeof createHash>) {
    for await (const piece of pieces) {
      bytes += piece.length
      if (bytes > maxTakenBytes) {
        throw new SourceError(`The signature files have more than ${maxTakenBytes / megabyte} MB.`)
      }
      hash.update(piece)
      yield piece
    }
  }

  return {
    list: (): SourceFile[] => [...files.values()].map(({ name, path }) => ({ name, path })),
    /** Writes a signature file. Other files are left to the caller to skip. */
    async add(memberPath: string, pieces: AsyncIterable<Buffer>) {
      if (!isSourceFile(memberPath)) return
      if (files.size >= maxFiles) throw new SourceError(`The archive has more than ${maxFiles} signature files.`)
      const name = toStoredName(source, memberPath)
      const path = join(dir, `${randomUUID()}-${name.slice(-40)}`)
      const digest = createHash('sha256')
      await pipeline(Readable.from(count(pieces, digest)), createWriteStream(path, { flags: 'wx', mode: 0o644 }))
      const hash = digest.digest('hex')
      // Readings of an archive by several rules give a member twice; another content would be another file.
      const other = files.get(name)
      if (other !== undefined && other.hash !== hash) throw new SourceError(`The archive has two files ${memberPath}.`)
      files.set(name, { name, path, hash })
    },
  }
}

type Taken = ReturnType<typeof newTaken>

/** The name in the signature store: that of the source, a digest of the path in an archive, and that of the file. */
function toStoredName(source: string, memberPath: string): string {
  const plain = `${source}--${memberPath}`
  if (/^[A-Za-z0-9_.-]+$/.test(memberPath) && plain.length <= maxNameLength) return plain
  const digest = createHash('sha256').update(memberPath).digest('hex').slice(0, 8)
  const file = basename(memberPath).replaceAll(/[^A-Za-z0-9_.-]+/g, '_')
  return `${source}--${digest}-${file.slice(-(maxNameLength - source.length - digest.length - 3))}`
}

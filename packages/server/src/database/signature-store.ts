import type { Pool } from 'pg'
import type { NewFile, SharedFile, SignatureStore } from '../domain/ports/source-store.ts'
import { OperatorMistake } from '../domain/problem.ts'
import { sendInTransaction } from './notifications.ts'
import { changeRows, findRow, inTransaction, listRows, type Queryable } from './query.ts'

const megabyte = 1024 * 1024
const maxFileMegabytes = 64
/** Every node copies all files, and a new node does so before it serves. */
const maxTotalMegabytes = 256
const pieceBytes = 4 * megabyte

/** Advisory lock: changes wait for each other, so that their sizes add up and no two wait for each other's files. */
export const filesLock = 52_115_009

const columns = `name, octet_length(content) as bytes, encode(sha256, 'hex') as sha256, changed_at as "changedAt",
  source`

export function makeSignatureStore({ pool }: { pool: Pool }): SignatureStore {
  return {
    listFiles: () => listRows<SharedFile>(pool, `select ${columns} from signature_files order by name`),
    requireStorable(files) {
      for (const { name, bytes } of files) {
        requireName(name)
        requireSize(name, bytes)
      }
    },
    saveFiles: (files) => inTransaction(pool, (client) => saveFiles(client, files), { lock: filesLock }),
    removeFile: (name) =>
      inTransaction(
        pool,
        async (client) => {
          await requireNoSource(client, name)
          const count = await changeRows(client, 'delete from signature_files where name = $1', [name])
          await noteHashFile(client, name)
          await sendInTransaction(client, 'signatures')
          return count === 1
        },
        { lock: filesLock },
      ),
    async *readContent({ name, bytes, sha256 }) {
      for (let at = 0; at < bytes; at += pieceBytes) {
        const row = await findRow<{ piece: Buffer }>(
          pool,
          `select substring(content from $3 for $4) as piece from signature_files
           where name = $1 and sha256 = decode($2, 'hex')`,
          [name, sha256, at + 1, pieceBytes],
        )
        if (row === undefined) return
        yield row.piece
      }
    },
  }
}

async function saveFiles(client: Queryable, files: NewFile[]): Promise<SharedFile[]> {
  const saved: SharedFile[] = []
  for (const { name, read } of files) {
    requireName(name)
    await requireNoSource(client, name)
    saved.push(...(await saveFile(client, name, await read(), null)))
    await noteHashFile(client, name)
  }
  await requireTotal(client)
  await sendInTransaction(client, 'signatures')
  return saved
}

/** Files of SHA-256 signatures make hashes known: workers revise the results with them. */
async function noteHashFile(client: Queryable, name: string) {
  if (!isHashFile(name)) return
  await changeRows(client, 'insert into revision_work (signature_file) values ($1)', [name])
  await sendInTransaction(client, 'hash-lists')
}

/** Publishers use both kinds for SHA-256. Lines with other hashes are skipped when the file is read. */
const isHashFile = (name: string) => /\.h[ds]b$/i.test(name)

/** Replaces the files of a source, without those that `keep` names. Files that are the same stay as they are. */
export async function replaceSourceFiles(
  client: Queryable,
  source: string,
  { files, keep }: { files: NewFile[]; keep: string[] },
) {
  const names = [...files.map(({ name }) => name), ...keep]
  const other = await findRow<{ name: string }>(
    client,
    'select name from signature_files where name = any ($1::text[]) and source is distinct from $2 limit 1',
    [names, source],
  )
  if (other !== undefined) throw new OperatorMistake(`You have added a signature file ${other.name}. Remove it first.`)
  await removeSourceFiles(client, source, names)
  for (const { name, read } of files) {
    requireName(name)
    const changed = await saveFile(client, name, await read(), source)
    if (changed.length > 0) await noteHashFile(client, name)
  }
  await requireTotal(client)
  await sendInTransaction(client, 'signatures')
}

/** Removes the files of a source, without those that `keep` names. */
export async function removeSourceFiles(client: Queryable, source: string, keep: string[]) {
  const removed = await listRows<{ name: string }>(
    client,
    'delete from signature_files where source = $1 and name <> all ($2::text[]) returning name',
    [source, keep],
  )
  for (const { name } of removed) await noteHashFile(client, name)
}

async function requireNoSource(client: Queryable, name: string) {
  const row = await findRow<{ source: string }>(
    client,
    'select source from signature_files where name = $1 and source is not null',
    [name],
  )
  if (row === undefined) return
  throw new OperatorMistake(
    `${name} belongs to the source ${row.source}, which replaces it. Use npm run assay -- sources remove.`,
  )
}

function requireName(name: string) {
  if (/^[A-Za-z0-9_][A-Za-z0-9_.-]{0,99}$/.test(name)) return
  throw new OperatorMistake(
    `${name} cannot be stored under this name: use up to 100 letters, digits, dots, hyphens and underscores.`,
  )
}

function requireSize(name: string, bytes: number) {
  if (bytes <= maxFileMegabytes * megabyte) return
  throw new OperatorMistake(
    `${name} has ${bytes} bytes, and a signature file may have up to ${maxFileMegabytes} MB. Split it.`,
  )
}

/**
 * Engines recognize a changed file by its size and its time in milliseconds, so the time always moves on. PostgreSQL
 * computes the hash, because that of a large file would stop the event loop for a quarter of a second.
 */
function saveFile(client: Queryable, name: string, content: Buffer, source: string | null): Promise<SharedFile[]> {
  requireSize(name, content.length)
  return listRows<SharedFile>(
    client,
    `insert into signature_files as stored (name, content, sha256, source) values ($1, $2::bytea, sha256($2::bytea), $3)
     on conflict (name) do update set content = excluded.content, sha256 = excluded.sha256,
       changed_at = greatest(excluded.changed_at, stored.changed_at + interval '2 milliseconds')
     where stored.source is not distinct from excluded.source and (stored.source is null or stored.sha256 <> excluded.sha256)
     returning ${columns}`,
    [name, content, source],
  )
}

async function requireTotal(client: Queryable) {
  const row = await findRow<{ bytes: number }>(
    client,
    'select coalesce(sum(octet_length(content)), 0)::float8 as bytes from signature_files',
  )
  if (row !== undefined && row.bytes <= maxTotalMegabytes * megabyte) return
  throw new OperatorMistake(
    `All signature files together may have up to ${maxTotalMegabytes} MB. Remove files that you no longer need.`,
  )
}

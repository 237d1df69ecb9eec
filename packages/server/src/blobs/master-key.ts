import { createCipheriv, createDecipheriv, createHmac, createSecretKey, randomBytes } from 'node:crypto'
import { chmodSync, linkSync, mkdirSync, readFileSync, renameSync, statSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { drawRandom } from '../domain/accounts/keys.ts'
import type { Binding } from '../domain/ports/secret-store.ts'
import { OperatorMistake } from '../domain/problem.ts'
import { syncDirectorySync, writeOnce } from '../runtime/files.ts'

/**
 * The key that seals secrets in the database, the content of small jobs, and the keys of larger stored content. Without
 * the master key none of them can be read.
 */
export type MasterKey = {
  /** Identifies the key without revealing anything about it. */
  id: string
  seal(clear: Buffer, binding: Binding): Buffer
  /** Throws when the value was sealed for something else or with another master key, or was changed. */
  open(sealed: Buffer, binding: Binding): Buffer
}

const idBytes = 8
const nonceBytes = 12
const tagBytes = 16
const headBytes = idBytes + nonceBytes

/**
 * Uses the given key, or the one in the data directory, which the first start creates readable by its owner only. With
 * `expectedId`, the key that sealed the secrets of the database, no other key is opened and none is created.
 */
export function openMasterKey(given: Buffer | undefined, dataDir: string, expectedId?: string): MasterKey {
  if (expectedId === undefined) return makeMasterKey(given ?? readOrCreate(dataDir))
  if (given !== undefined) return requireKey(makeMasterKey(given), expectedId, 'ASSAY_MASTER_KEY')
  const file = join(dataDir, masterKeyFile)
  const master = findMasterKey(file)
  if (master?.id === expectedId) return master
  finishRotation(dataDir, expectedId)
  return requireKey(findMasterKey(file), expectedId, resolve(file))
}

/** Finds the place of the key with this id: the setting, or a file in the data directory; undefined if it is lost. */
export function locateMasterKey(given: Buffer | undefined, dataDir: string, id: string): string | undefined {
  if (given !== undefined && makeMasterKey(given).id === id) return 'ASSAY_MASTER_KEY'
  const files = [masterKeyFile, nextMasterKeyFile, toKeptKeyFile(id)].map((name) => resolve(dataDir, name))
  return files.find((file) => findMasterKey(file)?.id === id)
}

function requireKey(master: MasterKey | undefined, expectedId: string, place: string): MasterKey {
  if (master?.id === expectedId) return master
  const fault = master === undefined ? `${place} is missing` : `${place} is another key (${master.id})`
  throw new OperatorMistake(
    `The secrets in this database are sealed with the master key ${expectedId}, and ${fault}. Restore the key, or set ASSAY_MASTER_KEY to it: all nodes of a database need the same key. If the key is lost, run: npm run assay -- master-key rotate --lost.`,
  )
}

/**
 * Puts the next key in the place of the current one, if the database belongs to it: the rotation has committed, and was
 * possibly interrupted. The current key is kept, because earlier backups need it.
 */
function finishRotation(dataDir: string, expectedId: string) {
  const [file, next] = [join(dataDir, masterKeyFile), join(dataDir, nextMasterKeyFile)]
  if (findMasterKey(next)?.id !== expectedId) return
  const old = findMasterKey(file)
  // Another process may finish the rotation at the same time: it has then kept the old key, or renamed the new one.
  if (old !== undefined && old.id !== expectedId) {
    ignoreError('EEXIST', () => linkSync(file, join(dataDir, toKeptKeyFile(old.id))))
  }
  ignoreError('ENOENT', () => renameSync(next, file))
  syncDirectorySync(dataDir)
}

function ignoreError(code: string, work: () => void) {
  try {
    work()
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== code) throw error
  }
}

/** Names of the key and, during a rotation, of its successor in the data directory. */
export const masterKeyFile = 'master.key'
export const nextMasterKeyFile = 'master.key.next'

/** Name of a former key, which a rotation has replaced. */
export const toKeptKeyFile = (id: string) => `${masterKeyFile}.${id}`

export function makeMasterKey(bytes: Buffer): MasterKey {
  const key = createSecretKey(bytes)
  const id = createHmac('sha256', key).update('which master key').digest().subarray(0, idBytes)
  return {
    id: id.toString('hex'),
    seal(clear, binding) {
      const nonce = drawRandom(nonceBytes)
      const cipher = createCipheriv('aes-256-gcm', key, nonce, tag).setAAD(toBytes(binding))
      const sealed = cipher.update(clear)
      cipher.final()
      return Buffer.concat([id, nonce, sealed, cipher.getAuthTag()])
    },
    open(sealed, binding) {
      if (sealed.length < headBytes + tagBytes) throw new Error(`A sealed value is too short (${binding[0]})`)
      if (!sealed.subarray(0, idBytes).equals(id)) {
        throw new Error(`A value was sealed with another master key, or is not sealed (${binding[0]})`)
      }
      const end = sealed.length - tagBytes
      const decipher = createDecipheriv('aes-256-gcm', key, sealed.subarray(idBytes, headBytes), tag)
      decipher.setAAD(toBytes(binding)).setAuthTag(sealed.subarray(end))
      const clear = decipher.update(sealed.subarray(headBytes, end))
      try {
        decipher.final()
      } catch (error) {
        throw new Error(`A sealed value was changed, or belongs elsewhere (${binding[0]})`, { cause: error })
      }
      return clear
    },
  }
}

/** Without a fixed length, a tag that was cut to 4 bytes would be accepted. */
const tag = { authTagLength: tagBytes }

/** JSON keeps the parts of a binding apart: no two bindings have the same bytes. */
const toBytes = (binding: Binding): Buffer => Buffer.from(JSON.stringify(binding))

function readOrCreate(dataDir: string): Buffer {
  mkdirSync(dataDir, { recursive: true })
  const file = join(dataDir, masterKeyFile)
  const existingKey = findKey(file)
  if (existingKey !== undefined) return existingKey
  writeOnce(file, `${randomBytes(32).toString('hex')}\n`)
  return findKey(file) as Buffer
}

function findMasterKey(file: string): MasterKey | undefined {
  const bytes = findKey(file)
  return bytes && makeMasterKey(bytes)
}

function findKey(file: string): Buffer | undefined {
  let text: string
  try {
    text = readFileSync(file, 'utf8')
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return undefined
    throw error
  }
  const bytes = parseMasterKey(text, file)
  if ((statSync(file).mode & 0o077) !== 0) chmodSync(file, 0o600)
  return bytes
}

/** Reads the text of a key file. */
export function parseMasterKey(text: string, file: string): Buffer {
  const digits = text.trim()
  if (/^[0-9a-f]{64}$/i.test(digits)) return Buffer.from(digits, 'hex')
  throw new OperatorMistake(
    `${file} is not a master key (64 hex digits). Restore it. If the key is lost, remove the file and run: npm run assay -- master-key rotate --lost.`,
  )
}

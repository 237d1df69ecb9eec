import { createCipheriv, createDecipheriv, createHmac, createSecretKey, randomBytes } from 'node:crypto'
import { chmodSync, mkdirSync, readFileSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { drawRandom } from '../domain/accounts/secrets.ts'
import { OperatorMistake } from '../domain/problem.ts'
import { writeOnce } from '../runtime/write-once.ts'

/** Encrypts the data key of each object. Without the master key, stored content cannot be read. */
export type MasterKey = {
  /** Identifies the key without revealing anything about it. */
  id: string
  wrap(dataKey: Buffer): Buffer
  unwrap(wrapped: Buffer): Buffer
}

export const wrappedKeyBytes = 12 + 32 + 16

/** Uses the given key, or the one in the data directory, which the first start creates readable by its owner only. */
export function openMasterKey(given: Buffer | undefined, dataDir: string): MasterKey {
  return makeMasterKey(given ?? readOrCreate(dataDir))
}

function makeMasterKey(bytes: Buffer): MasterKey {
  const key = createSecretKey(bytes)
  return {
    id: createHmac('sha256', key).update('which master key').digest('hex').slice(0, 16),
    wrap(dataKey) {
      const nonce = drawRandom(12)
      const cipher = createCipheriv('aes-256-gcm', key, nonce)
      const sealed = cipher.update(dataKey)
      cipher.final()
      return Buffer.concat([nonce, sealed, cipher.getAuthTag()])
    },
    unwrap(wrapped) {
      const decipher = createDecipheriv('aes-256-gcm', key, wrapped.subarray(0, 12))
      decipher.setAuthTag(wrapped.subarray(wrapped.length - 16))
      return Buffer.concat([decipher.update(wrapped.subarray(12, wrapped.length - 16)), decipher.final()])
    },
  }
}

function readOrCreate(dataDir: string): Buffer {
  mkdirSync(dataDir, { recursive: true })
  const file = join(dataDir, 'master.key')
  const existingKey = findKey(file)
  if (existingKey !== undefined) return existingKey
  writeOnce(file, `${randomBytes(32).toString('hex')}\n`)
  return findKey(file) as Buffer
}

function findKey(file: string): Buffer | undefined {
  let text: string
  try {
    text = readFileSync(file, 'utf8').trim()
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return undefined
    throw error
  }
  if (!/^[0-9a-f]{64}$/i.test(text)) {
    throw new OperatorMistake(
      `${file} is not a master key (64 hex digits). Restore it, or remove it: then a new key is created, and content stored under the old key is lost.`,
    )
  }
  if ((statSync(file).mode & 0o077) !== 0) chmodSync(file, 0o600)
  return Buffer.from(text, 'hex')
}

import { randomBytes } from 'node:crypto'
import { existsSync, readFileSync, rmSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { toBinding } from '../blobs/job-contents.ts'
import {
  locateMasterKey,
  type MasterKey,
  makeMasterKey,
  masterKeyFile,
  nextMasterKeyFile,
  openMasterKey,
  parseMasterKey,
  toKeptKeyFile,
} from '../blobs/master-key.ts'
import type { Config } from '../config/load-config.ts'
import { isSatellite } from '../database/regions.ts'
import { type Resealed, type Resealing, resealAll } from '../database/reseal.ts'
import { findRecordedKey, webhookSecretOf } from '../database/secret-stores.ts'
import { newWebhookSecret } from '../domain/accounts/keys.ts'
import type { Binding } from '../domain/ports/secret-store.ts'
import { OperatorMistake } from '../domain/problem.ts'
import { writeOnce } from '../runtime/files.ts'
import type { Stores } from './stores.ts'

type Options = {
  /** A file with the new key; without it a key is generated, if the key is in the data directory. */
  newKeyFile: string | undefined
  /** Whether the old key is lost: everything that it sealed is replaced or given up. */
  isLost: boolean
  /** Writes the entry of the audit log, in the transaction that seals everything with the new key. */
  note(ids: { oldId: string; newId: string }): Promise<void>
}

export type Rotation = Resealed & {
  oldId: string
  newId: string
  /** The new and the old key in the data directory; undefined if the key is in the settings. */
  file: string | undefined
  oldFile: string | undefined
}

/**
 * Replaces the master key. The new key is on the disk before the database belongs to it, and takes the place of the old
 * one afterwards: whenever the command is interrupted, the key that the database belongs to is there.
 */
export async function rotateMasterKey(config: Config, stores: Stores, options: Options): Promise<Rotation> {
  const { pool } = stores.database
  const recorded = await findRecordedKey(pool)
  if (recorded === undefined) throw new OperatorMistake('This database holds nothing sealed yet: set the new key.')
  if (options.isLost) requireLost(config, recorded.id)
  const old = options.isLost ? undefined : openMasterKey(config.masterKey, config.dataDir, recorded.id)
  const bytes = readNewKey(config, options)
  const next = makeMasterKey(bytes)
  if (next.id === recorded.id) throw new OperatorMistake('The new master key is the current one. Nothing was changed.')
  const isInDirectory = config.masterKey === undefined
  const ids = { oldId: recorded.id, newId: next.id }
  const resealed = await stores.auth.audit.atomically(async () => {
    const counts = await resealAll(pool, toResealing(recorded.id, old, next), {
      isSatellite: await isSatellite(pool),
      // While the transaction holds its lock, no other rotation can commit, so the file is the key of no database yet.
      onLocked: () => isInDirectory && placeNextKey(config.dataDir, bytes),
    })
    await options.note(ids)
    return counts
  })
  if (!isInDirectory) return { ...resealed, ...ids, file: undefined, oldFile: undefined }
  // Opening the key of the database finishes the rotation.
  openMasterKey(undefined, config.dataDir, next.id)
  const oldFile = resolve(config.dataDir, toKeptKeyFile(recorded.id))
  return {
    ...resealed,
    ...ids,
    file: resolve(config.dataDir, masterKeyFile),
    oldFile: existsSync(oldFile) ? oldFile : undefined,
  }
}

/** Replacing secrets cannot be undone, so `--lost` is refused as long as the key is in a known place. */
function requireLost({ masterKey, dataDir }: Config, id: string) {
  const place = locateMasterKey(masterKey, dataDir, id)
  if (place === undefined) return
  throw new OperatorMistake(
    `The key is not lost: ${place} is the master key ${id} of this database. Use it, and run the command without --lost. Nothing was changed.`,
  )
}

function readNewKey({ masterKey }: Config, { newKeyFile }: Options): Buffer {
  if (newKeyFile !== undefined) return parseMasterKey(readFileSync(newKeyFile, 'utf8'), newKeyFile)
  if (masterKey === undefined) return randomBytes(32)
  throw new OperatorMistake(
    'ASSAY_MASTER_KEY is set, so Assay cannot store a new key: create one with `openssl rand -hex 32`, and give its file with --new-key-file.',
  )
}

function toResealing(oldId: string, old: MasterKey | undefined, next: MasterKey): Resealing {
  const openOld = (sealed: Buffer, binding: Binding): Buffer | undefined => {
    try {
      return old?.open(sealed, binding)
    } catch {
      return undefined
    }
  }
  const reseal = (sealed: Buffer, binding: Binding) => {
    const clear = openOld(sealed, binding)
    return clear && next.seal(clear, binding)
  }
  return {
    oldId,
    newId: next.id,
    reseal,
    resealJob: ({ accountId, scanId, storageKey, sealed, bytes, sha256 }) =>
      reseal(sealed, toBinding(storageKey ?? 'row', { accountId, scanId }, { bytes, sha256 })),
    ...(old === undefined && {
      newWebhookSecret: (id: string) => next.seal(Buffer.from(newWebhookSecret()), webhookSecretOf(id)),
    }),
  }
}

/** Stores the new key beside the old one. A rotation that was interrupted before its commit may have left another. */
function placeNextKey(dataDir: string, bytes: Buffer) {
  const file = join(dataDir, nextMasterKeyFile)
  rmSync(file, { force: true })
  writeOnce(file, `${bytes.toString('hex')}\n`)
}

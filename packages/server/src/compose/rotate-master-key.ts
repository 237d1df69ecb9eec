import { randomBytes } from 'node:crypto'
import { readFileSync, renameSync, rmSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { resealBytes } from '../blobs/frames.ts'
import { toBinding } from '../blobs/job-contents.ts'
import {
  type MasterKey,
  makeMasterKey,
  masterKeyFile,
  nextMasterKeyFile,
  openMasterKey,
  parseMasterKey,
} from '../blobs/master-key.ts'
import type { Config } from '../config/load-config.ts'
import { findRecordedKey } from '../database/master-key-store.ts'
import { isSatellite } from '../database/regions.ts'
import { type Resealed, type Resealing, resealAll } from '../database/reseal.ts'
import { webhookSecretOf } from '../database/webhook-secrets.ts'
import { newWebhookSecret } from '../domain/accounts/secrets.ts'
import type { Binding } from '../domain/ports/sealer.ts'
import { OperatorMistake } from '../domain/problem.ts'
import { syncDirectorySync } from '../runtime/sync-directory.ts'
import { writeOnce } from '../runtime/write-once.ts'
import type { Stores } from './stores.ts'

type Options = {
  /** A file with the new key; without it a key is generated, if the key is in the data directory. */
  newKeyFile: string | undefined
  /** Whether the old key is lost: everything that it sealed is replaced or given up. */
  isLost: boolean
}

export type Rotation = Resealed & { oldId: string; newId: string; file: string | undefined }

/**
 * Replaces the master key. The new key is on the disk before the database belongs to it, and takes the place of the old
 * one afterwards: whenever the command is interrupted, the key that the database belongs to is there.
 */
export async function rotateMasterKey(config: Config, stores: Stores, options: Options): Promise<Rotation> {
  const { pool } = stores.database
  const recorded = await findRecordedKey(pool)
  if (recorded === undefined) throw new OperatorMistake('This database holds nothing sealed yet: set the new key.')
  const old = options.isLost ? undefined : openMasterKey(config.masterKey, config.dataDir, recorded.id)
  const bytes = readNewKey(config, options)
  const next = makeMasterKey(bytes)
  if (next.id === recorded.id) throw new OperatorMistake('The new master key is the current one. Nothing was changed.')
  const isInDirectory = config.masterKey === undefined
  if (isInDirectory) placeNextKey(config.dataDir, bytes)
  const resealing = toResealing(recorded.id, old, next)
  const resealed = await resealAll(pool, resealing, { isSatellite: await isSatellite(pool) })
  const file = isInDirectory ? installNextKey(config.dataDir) : undefined
  return { ...resealed, oldId: recorded.id, newId: next.id, file }
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
      resealBytes(sealed, (key) =>
        reseal(key, toBinding(storageKey ?? 'row', { accountId, scanId }, { bytes, sha256 })),
      ),
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

function installNextKey(dataDir: string): string {
  const file = resolve(dataDir, masterKeyFile)
  renameSync(join(dataDir, nextMasterKeyFile), file)
  syncDirectorySync(dataDir)
  return file
}

import { type MasterKey, openMasterKey } from '../blobs/master-key.ts'
import type { Config } from '../config/load-config.ts'
import type { Database } from '../database/open-database.ts'
import { findRecordedKey, recordMasterKey } from '../database/secret-stores.ts'
import type { Sealer } from '../domain/ports/secret-store.ts'
import { OperatorMistake } from '../domain/problem.ts'

export type Sealing = Sealer & {
  getKey(): Promise<{ master: MasterKey; installationId: string }>
  /** A sentence for the readiness page while the database belongs to another key than that of this process. */
  findFault(): Promise<string | undefined>
}

/**
 * Opens the master key when it is first needed: most operator commands need none, and may run where there is none.
 * Throws an `OperatorMistake` when the secrets of this database were sealed with another key.
 */
export function makeSealing(config: Config, { pool }: Pick<Database, 'pool'>): Sealing {
  let opened: ReturnType<typeof open> | undefined

  return {
    getKey,
    seal: async (clear, binding) => (await getKey()).master.seal(clear, binding),
    open: async (sealed, binding) => (await getKey()).master.open(sealed, binding),
    async findFault() {
      const { master } = await getKey()
      const recorded = await findRecordedKey(pool)
      return recorded?.id === master.id ? undefined : 'The master key was rotated. Restart this node with the new key.'
    },
  }

  function getKey() {
    opened ??= open().catch((error) => {
      opened = undefined
      throw error
    })
    return opened
  }

  async function open() {
    const expectedId = (await findRecordedKey(pool))?.id
    try {
      return await openKey(expectedId)
    } catch (error) {
      // A rotation may have committed since the id was read: then the key of the new id is the right one.
      const recordedId = (await findRecordedKey(pool))?.id
      if (expectedId === undefined || recordedId === expectedId) throw error
      return openKey(recordedId)
    }
  }

  async function openKey(expectedId: string | undefined) {
    const master = openMasterKey(config.masterKey, config.dataDir, expectedId)
    const { id, installationId } = await recordMasterKey(pool, master.id)
    // Another node that starts at the same time may have recorded its key first.
    if (id !== master.id) throw new OperatorMistake(wrongKey)
    return { master, installationId }
  }
}

const wrongKey =
  'Another node has sealed the secrets of this database with its own master key. Give all nodes the same ASSAY_MASTER_KEY.'

import { findRow, type Queryable } from './query.ts'

/** The master key that a database belongs to, and the id of the installation, which outlives the key. */
export type RecordedKey = { id: string; installationId: string }

export const findRecordedKey = (db: Queryable): Promise<RecordedKey | undefined> =>
  findRow<RecordedKey>(db, 'select id, installation_id as "installationId" from master_key')

/** Records the key of the first process that needs one. Returns the recorded key, which may be that of another. */
export async function recordMasterKey(db: Queryable, id: string): Promise<RecordedKey> {
  await db.query('insert into master_key (id) values ($1) on conflict do nothing', [id])
  const recorded = await findRecordedKey(db)
  if (recorded === undefined) throw new Error('The master key was not recorded')
  return recorded
}

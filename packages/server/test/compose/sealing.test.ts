import assert from 'node:assert/strict'
import { randomBytes } from 'node:crypto'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'node:test'
import type { Pool } from 'pg'
import { makeMasterKey } from '../../src/blobs/master-key.ts'
import { makeSealing } from '../../src/compose/sealing.ts'
import { loadConfig } from '../../src/config/load-config.ts'
import { openTestDatabase } from '../support/test-database.ts'

/** The pool, which runs `act` after its first statement. */
function actAfterFirst(pool: Pool, act: () => Promise<unknown>): Pool {
  let count = 0
  const query = async (statement: string, values?: unknown[]) => {
    const result = await pool.query(statement, values)
    if (++count === 1) await act()
    return result
  }
  return Object.assign(Object.create(pool), { query })
}

test('a key that is rotated while it is opened is opened again', async (t) => {
  const database = await openTestDatabase()
  const dir = mkdtempSync(join(tmpdir(), 'assay-sealing-'))
  t.after(async () => {
    rmSync(dir, { recursive: true })
    await database.drop()
  })
  const { pool } = database
  const { config } = loadConfig({ ASSAY_DATABASE_URL: database.url, ASSAY_DATA_DIR: dir })
  const { master: old, installationId } = await makeSealing(config, { pool }).getKey()
  const bytes = randomBytes(32)
  const next = makeMasterKey(bytes)
  // The rotation has committed, and not renamed its key yet.
  writeFileSync(join(dir, 'master.key.next'), bytes.toString('hex'))
  const commit = () => pool.query('update master_key set id = $1 where id = $2', [next.id, old.id])
  const opened = await makeSealing(config, { pool: actAfterFirst(pool, commit) }).getKey()
  assert.deepEqual([opened.master.id, opened.installationId], [next.id, installationId])

  // The rotation has committed a key that this node does not have.
  const away = () => pool.query(`update master_key set id = '0000000000000000'`)
  const sealing = makeSealing(config, { pool: actAfterFirst(pool, away) })
  await assert.rejects(sealing.getKey(), /sealed with the master key 0000000000000000, and .* is another key/)
})

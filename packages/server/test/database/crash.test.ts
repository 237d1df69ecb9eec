import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { test } from 'node:test'
import { fileURLToPath } from 'node:url'
import { findProcesses, killAll } from '../../../../acceptance/support/processes.ts'
import { openStores } from '../../src/compose/stores.ts'
import { loadConfig } from '../../src/config/load-config.ts'
import { silentLog } from '../support/silent-log.ts'

const rounds = 3

test('kill -9 of service and database under load loses no acknowledged charge and makes none up', async () => {
  const dataDir = mkdtempSync(join(tmpdir(), 'assay-crash-'))
  try {
    const acknowledged: string[] = []
    for (let round = 0; round < rounds; round++) acknowledged.push(...(await chargeAndKill(dataDir, 500)))
    assert.ok(acknowledged.length >= rounds * 500)

    const { config } = loadConfig({ ASSAY_DATA_DIR: dataDir })
    const stores = await openStores(config, 'service', silentLog)
    try {
      const { rows } = await stores.database.pool.query<{ lost: number; debits: number; scans: number }>(
        `select (select count(*)::int from unnest($1::uuid[]) as a (id) where not exists (select from scans where scans.id = a.id)) as lost,
           (select count(*)::int from scans where ledger_id is not null) as debits,
           (select count(*)::int from scans) as scans`,
        [acknowledged],
      )
      assert.equal(rows[0]?.lost, 0)
      assert.equal(rows[0]?.debits, rows[0]?.scans)
      assert.deepEqual(await stores.accounts.listUnbalanced(), [])
    } finally {
      await stores.close()
    }
  } finally {
    rmSync(dataDir, { recursive: true, force: true })
  }
})

/** Returns the ids that were acknowledged before everything was killed in mid-flight. */
async function chargeAndKill(dataDir: string, atLeast: number): Promise<string[]> {
  const script = fileURLToPath(new URL('../support/charge-loop.ts', import.meta.url))
  const child = spawn(process.execPath, [script], {
    env: { ...process.env, ASSAY_DATABASE_URL: '', ASSAY_DATA_DIR: dataDir },
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  const ended = new Promise((resolve) => child.once('exit', resolve))
  const ids: string[] = []
  for await (const line of createInterface({ input: child.stdout })) {
    ids.push(line)
    if (ids.length !== atLeast) continue
    killAll(findProcesses(join(dataDir, 'postgres')))
    child.kill('SIGKILL')
  }
  await ended
  return ids
}

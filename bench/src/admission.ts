import { randomUUID } from 'node:crypto'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type pg from 'pg'
import { openStores } from '../../packages/server/src/compose/stores.ts'
import { loadConfig } from '../../packages/server/src/config/load-config.ts'
import { makeAdmissionGate } from '../../packages/server/src/database/admission-gate.ts'
import { toKeyDigest } from '../../packages/server/src/domain/accounts/keys.ts'
import type { NewScan } from '../../packages/server/src/domain/scans/scan.ts'
import { makeLogger } from '../../packages/server/src/runtime/logger.ts'
import type { Row } from './results.ts'

const callers = 64
const runMs = 4000

/** Rate window, credit, scan row and ledger row for one busy account: the gate against one transaction per request. */
export async function benchAdmission(): Promise<Row[]> {
  const dataDir = mkdtempSync(join(tmpdir(), 'assay-bench-'))
  const { config } = loadConfig({ ASSAY_DATA_DIR: dataDir, ASSAY_DATABASE_CONNECTIONS: String(callers) })
  const log = makeLogger({ level: 'warn', region: 'bench' })
  const { database, registration, close } = await openStores(config, 'service', log)
  try {
    const { apiKey } = await registration.register({ name: 'hot', plan: 'unlimited' })
    const digest = toKeyDigest(apiKey)
    const gate = makeAdmissionGate({ pool: database.pool })
    const grouped = () => gate.admit({ keyDigest: digest, countsRequest: true, scan: newScan() })
    const single = () => admitInTransaction(database.pool, digest)

    const rounds: { grouped: number; single: number }[] = []
    for (let round = 0; round < 3; round++) {
      // The order alternates, so that neither side always runs on the colder or fuller database.
      const first = round % 2 === 0
      const a = await measure(first ? grouped : single)
      const b = await measure(first ? single : grouped)
      rounds.push(first ? { grouped: a, single: b } : { grouped: b, single: a })
    }
    const median = rounds.toSorted((a, b) => a.grouped / a.single - b.grouped / b.single)[1] ?? {
      grouped: 0,
      single: 1,
    }
    return [
      {
        what: `admission, ${callers} callers, one hot account`,
        ours: `${Math.round(median.grouped)}/s`,
        against: `one transaction per request: ${Math.round(median.single)}/s`,
        ratio: median.grouped / median.single,
        wanted: 'at least 20',
      },
    ]
  } finally {
    await close()
    rmSync(dataDir, { recursive: true, force: true })
  }
}

async function measure(work: () => Promise<unknown>): Promise<number> {
  await Promise.all(Array.from({ length: callers }, () => work()))
  const start = performance.now()
  let done = 0
  const caller = async () => {
    while (performance.now() - start < runMs) {
      await work()
      done++
    }
  }
  await Promise.all(Array.from({ length: callers }, caller))
  return (done * 1000) / (performance.now() - start)
}

const newScan = (): NewScan => ({
  id: randomUUID(),
  kind: 'malware',
  mode: 'sync',
  region: 'bench',
  contentLength: 1024,
  contentType: 'text/plain',
  contentName: 'bench.txt',
  metadata: null,
  status: 'pending',
  signals: null,
  createdAt: new Date(),
  completedAt: null,
})

/** The usual solution without batches: the same work in a transaction per request, which locks the rows. */
async function admitInTransaction(pool: pg.Pool, digest: string) {
  const client = await pool.connect()
  try {
    await client.query('begin')
    const { rows } = await client.query<{ id: string; account_id: string }>(
      `select id, account_id from api_keys where digest = decode($1, 'hex') and revoked_at is null`,
      [digest],
    )
    const { id: keyId, account_id: accountId } = rows[0] ?? { id: '', account_id: '' }
    await client.query(
      `update rate_windows set used = case when started_at <= now() - interval '1 minute' then 1 else used + 1 end,
         started_at = case when started_at <= now() - interval '1 minute' then now() else started_at end,
         last_used_at = now() where key_id = $1`,
      [keyId],
    )
    const debit = await client.query<{ credit_remaining: number }>(
      `update balances set credit_remaining = credit_remaining - 1 where account_id = $1 and credit_remaining > 0
       returning credit_remaining`,
      [accountId],
    )
    const scan = newScan()
    await client.query(
      `insert into scans (id, account_id, kind, mode, region, content_length, content_type, balance, ledger_id)
       values ($1, $2, $3, $4, $5, $6, $7, $8, nextval('credit_ledger_id_seq'))`,
      [
        scan.id,
        accountId,
        scan.kind,
        scan.mode,
        scan.region,
        scan.contentLength,
        scan.contentType,
        debit.rows[0]?.credit_remaining ?? 0,
      ],
    )
    await client.query('commit')
  } finally {
    client.release()
  }
}

import { makeAccountStore, makePlanStore } from '../../packages/server/src/database/account-store.ts'
import { makeKeyStore } from '../../packages/server/src/database/key-store.ts'
import { migrate } from '../../packages/server/src/database/migrate.ts'
import { openDatabase } from '../../packages/server/src/database/open-database.ts'
import { toScanIdAt } from '../../packages/server/src/database/scan-partitions.ts'
import { makeScanStore } from '../../packages/server/src/database/scan-store.ts'
import { toKeyDigest } from '../../packages/server/src/domain/accounts/keys.ts'
import { makeRegistration } from '../../packages/server/src/domain/accounts/registration.ts'
import type { Logger } from '../../packages/server/src/runtime/logger.ts'
import { testSealer } from '../../packages/server/test/support/test-sealer.ts'

const days = 30
const dayMs = 86_400_000

/** Makes a database with this many results of a month, charged one by one, in daily partitions. */
export async function openArchive(server: string, size: number, log: Logger) {
  const name = `stored_${size}`
  const first = await openDatabase({ url: server, connections: 2, log })
  await first.pool.query(`create database ${name}`).finally(first.close)
  const url = server.replace(/\/\w+(?=\?|$)/, `/${name}`)
  const database = await openDatabase({ url, connections: 8, log })
  await migrate({ ...database, log })
  const { pool } = database
  const today = Math.floor(Date.now() / dayMs)
  for (let day = today - days; day < today; day++) {
    const [from, to] = [day, day + 1].map((n) => toScanIdAt(new Date(n * dayMs)))
    await pool.query(`create table scans_${day} partition of scans for values from ('${from}') to ('${to}')`)
  }
  await makeScanStore(database).createPartitions(days)
  const [accounts, keys, plans] = [
    makeAccountStore({ ...database, sealer: testSealer }),
    makeKeyStore(database),
    makePlanStore(database),
  ]
  const registration = makeRegistration({ accounts, keys, plans })
  const { apiKey, account } = await registration.register({ name: 'bench', plan: 'unlimited' })
  const step = (days * dayMs) / size
  const atOnce = 50_000
  for (let from = 0; from < size; from += atOnce) {
    const start = Date.now() - days * dayMs + from * step
    await pool.query(fill, [account.id, start, step, Math.min(atOnce, size - from)])
  }
  await pool.query('vacuum analyze')
  const { rows } = await pool.query<{ id: string }>('select id from scans order by random() limit 20000')
  const ids = rows.map(({ id }) => id)
  return { size, database, ids, accountId: account.id, keyDigest: toKeyDigest(apiKey), close: database.close }
}

export type Archive = Awaited<ReturnType<typeof openArchive>>

/** $1 account, $2 time of the first, $3 milliseconds between two, $4 count. */
const fill = `
with made as materialized (
  select (lpad(to_hex(($2::float8 + n * $3::float8)::bigint), 12, '0') || '7' || substr(md5(random()::text), 1, 19))::uuid
      as id, to_timestamp(($2::float8 + n * $3::float8) / 1000) as at,
      md5((($2::float8 + n * $3::float8)::bigint)::text) as hash
  from generate_series(0, $4::integer - 1) as n
),
paid as (
  update balances set credit_remaining = credit_remaining - $4::integer where account_id = $1
)
insert into scans (id, account_id, kind, mode, region, status, content_length, content_type, content_name, signals,
  metadata, created_at, completed_at, ledger_id, balance)
select id, $1, 'malware', 'sync', 'bench', 'clean', 1024, 'text/plain', 'bench-' || substr(hash, 1, 8) || '.txt', '{}',
  json_build_object('hash_sha1', hash || substr(hash, 1, 8), 'hash_sha256', hash || hash), at, at,
  nextval('credit_ledger_id_seq'), 0 from made
`

import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import pg from 'pg'
import { openStores } from '../../packages/server/src/compose/stores.ts'
import { loadConfig } from '../../packages/server/src/config/load-config.ts'
import { makeAdmissionGate } from '../../packages/server/src/database/admission-gate.ts'
import { toKeyDigest } from '../../packages/server/src/domain/accounts/keys.ts'
import { makeLogger } from '../../packages/server/src/runtime/logger.ts'

/** A result that the minimum has to charge and to store before it responds. */
export type Scanned = {
  id: string
  status: 'clean' | 'threat' | 'error'
  contentLength: number
  hashes: { hash_sha1: string; hash_sha256: string }
  createdAt: Date
  completedAt: Date
  /** The response. */
  body: string
}

export type Store = (scanned: Scanned) => Promise<void>

/** Charges one account and stores ids, hashes and responses, in one small statement for all results that wait. */
export async function openSmallStore(databaseUrl: string, onError: (error: Error) => void): Promise<Store> {
  const client = new pg.Client({ connectionString: databaseUrl })
  let batch: { scanned: Scanned; done(): void }[] = []
  let isBusy = false
  await client.connect()
  await client.query(`
    create table accounts (id int primary key, remaining bigint not null, used bigint not null);
    insert into accounts values (1, 1000000000, 0);
    create table results (id uuid primary key, at timestamptz default now(), sha256 bytea, body text)`)

  async function storeBatch() {
    if (isBusy) return
    isBusy = true
    while (batch.length > 0) {
      const scans = batch
      batch = []
      const { rowCount } = await client.query({
        name: 'store',
        text: `with charge as (update accounts set remaining = remaining - $1, used = used + $1
          where id = 1 and remaining >= $1 returning id)
        insert into results (id, sha256, body) select scan.* from charge, unnest($2::uuid[], $3::bytea[], $4::text[]) scan`,
        values: [
          scans.length,
          scans.map(({ scanned }) => scanned.id),
          scans.map(({ scanned }) => Buffer.from(scanned.hashes.hash_sha256, 'hex')),
          scans.map(({ scanned }) => scanned.body),
        ],
      })
      if (rowCount !== scans.length) throw new Error('The account has no credits left')
      for (const { done } of scans) done()
    }
    isBusy = false
  }

  return (scanned) =>
    new Promise((done) => {
      batch.push({ scanned, done })
      storeBatch().catch(onError)
    })
}

/** Charges and records each scan by the admission of Assay: exact rates and credits for any number of keys. */
export async function openAdmissionStore(databaseUrl: string): Promise<Store> {
  // Each of these programs has a data directory of its own, because opening the stores locks the directory.
  const dataDir = mkdtempSync(join(tmpdir(), 'assay-bench-admission-'))
  const { config } = loadConfig({ ...process.env, ASSAY_DATABASE_URL: databaseUrl, ASSAY_DATA_DIR: dataDir })
  const log = makeLogger({ level: 'warn', region: 'bench' })
  const { database, registration } = await openStores(config, 'service', log)
  rmSync(dataDir, { recursive: true })
  const { apiKey } = await registration.register({ name: 'hot', plan: 'unlimited' })
  const keyDigest = toKeyDigest(apiKey)
  const gate = makeAdmissionGate(database)
  return async ({ hashes, body, ...scanned }) => {
    const { outcome } = await gate.admit({
      keyDigest,
      countsRequest: true,
      scan: {
        ...scanned,
        kind: 'malware',
        mode: 'sync',
        region: 'bench',
        signals: [],
        metadata: hashes,
        contentType: 'text/plain',
        contentName: 'a.txt',
      },
    })
    if (outcome !== 'admitted') throw new Error(`The gate answers ${outcome}`)
  }
}

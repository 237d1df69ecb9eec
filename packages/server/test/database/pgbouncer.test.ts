import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { openDatabaseProxy } from '../../../../acceptance/support/tcp-proxy.ts'
import { makeAccountStore, makePlanStore } from '../../src/database/account-store.ts'
import { makeAdmissionGate } from '../../src/database/admission-gate.ts'
import { makeJobStore } from '../../src/database/job-store.ts'
import { makeKeyStore } from '../../src/database/key-store.ts'
import { migrate } from '../../src/database/migrate.ts'
import { openNotifications } from '../../src/database/notifications.ts'
import { type Database, openDatabase } from '../../src/database/open-database.ts'
import { makeScanStore } from '../../src/database/scan-store.ts'
import { toKeyDigest } from '../../src/domain/accounts/keys.ts'
import { makeRegistration } from '../../src/domain/accounts/registration.ts'
import type { Logger } from '../../src/runtime/logger.ts'
import { hasPgbouncer, openPgbouncer } from '../support/pgbouncer.ts'
import { silentLog } from '../support/silent-log.ts'
import { openTestDatabase } from '../support/test-database.ts'
import { testSealer } from '../support/test-sealer.ts'
import { waitFor } from '../support/wait-for.ts'
import { leaseMs, newSubmit, testQueue, toFailure } from './test-jobs.ts'

describe('behind pgbouncer', { skip: hasPgbouncer() ? false : 'pgbouncer is not installed' }, () => {
  test('in session mode everything works', async () => {
    await withPooled('session', async (url) => {
      const database = await openPatiently(url)
      try {
        await migrate({ ...database, log: silentLog })
        await charge(database)
      } finally {
        await database.close()
      }
    })
  })

  test('in transaction mode the service refuses to start, and says what to set', async () => {
    await withPooled('transaction', async (url) => {
      await assert.rejects(
        openPatiently(url),
        /^Error: a pooler gives every transaction another connection; set ASSAY_DATABASE_DIRECT_URL to the address of the server itself, or pool_mode = session$/,
      )
      await assert.rejects(
        openPatiently(url, url),
        /^Error: ASSAY_DATABASE_DIRECT_URL leads through a pooler that gives every transaction another connection/,
      )
    })
  })

  test('in transaction mode everything works with a direct address beside it', async () => {
    await withPooled('transaction', async (url, directUrl) => {
      const proxy = await openDatabaseProxy(directUrl)
      const database = await openPatiently(url, proxy.url)
      const warnings: string[] = []
      const log = { ...silentLog, warn: (_: unknown, message: string) => warnings.push(message) } as unknown as Logger
      const { pool } = database
      const notifications = openNotifications({ ...database.direct, pool, log, hasOwnAddress: true })
      try {
        assert.deepEqual(
          database.lacks.map(({ what }) => what),
          ['statement_timeout'],
        )
        await migrate({ pool: database.direct.pool, log: silentLog })
        await charge(database)
        await waitFor(() => notifications.isListening())
        // Another client of the pooler gets the same server process, and finds no settings or statements of ours.
        const { rows } = await database.pool.query(
          `select current_setting('enable_seqscan') as seqscan, (select count(*)::int from pg_prepared_statements) as prepared`,
        )
        assert.deepEqual(rows, [{ seqscan: 'on', prepared: 0 }])
        proxy.setMode('cut')
        await waitFor(() => warnings.length > 0)
        assert.match(warnings.join(), /^notifications between processes do not work/)
        assert.equal(database.watch.isUnavailable(), false)
        proxy.setMode('pass')
        await waitFor(() => notifications.isListening())
      } finally {
        await notifications.close()
        await database.close()
        await proxy.close()
      }
      const elsewhere = await openTestDatabase({ migrated: false })
      await assert.rejects(openPatiently(url, elsewhere.url), /lead to different databases/).finally(elsewhere.drop)
    })
  })
})

async function withPooled(mode: 'session' | 'transaction', work: (url: string, directUrl: string) => Promise<void>) {
  const database = await openTestDatabase({ migrated: false })
  const pooler = await openPgbouncer(database.url, mode)
  try {
    const name = /\/(\w+)(?=\?|$)/.exec(database.url)?.[1] ?? ''
    await work(pooler.toUrl(name), database.url)
  } finally {
    await pooler.close()
    await database.drop()
  }
}

/** Retries until pgbouncer listens. */
async function openPatiently(url: string, directUrl?: string): Promise<Database> {
  for (let left = 100; ; left--) {
    try {
      return await openDatabase({ url, directUrl, connections: 4, log: silentLog })
    } catch (error) {
      if (left === 0 || (error as { code?: string }).code !== 'ECONNREFUSED') throw error
      await sleep(50)
    }
  }
}

/** Runs charges, jobs, completions, refunds and cleanup: every kind of statement. */
async function charge(database: Database) {
  const [accounts, keys, plans] = [
    makeAccountStore({ ...database, sealer: testSealer }),
    makeKeyStore(database),
    makePlanStore(database),
  ]
  const { pool } = database
  const [gate, scans, jobs] = [
    makeAdmissionGate({ pool }),
    makeScanStore(database),
    makeJobStore({ pool, listQueues: () => [testQueue] }),
  ]
  const registration = makeRegistration({ accounts, keys, plans })
  const { apiKey, account } = await registration.register({ name: 'pooled', plan: 'free', credits: 50 })
  await scans.createPartitions(30)
  await Promise.all(Array.from({ length: 20 }, () => gate.admit(newSubmit(toKeyDigest(apiKey)))))
  const claimed = await jobs.claim(20, leaseMs)
  assert.equal(claimed.length, 20)
  await Promise.all(claimed.slice(5).map((job) => jobs.complete(job.lease, toFailure(job))))
  assert.equal(await scans.deleteCompleted(30), 0)
  assert.equal((await accounts.findAccount(account.id))?.balance.creditRemaining, 45)
  assert.deepEqual(await accounts.listUnbalanced(), [])
}

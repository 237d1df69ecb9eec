import assert from 'node:assert/strict'
import { after, before, describe, test } from 'node:test'
import { leaseMs, openTestJobs, type TestJobs, testQueue, toCompletion } from './test-jobs.ts'

/** Rows that PostgreSQL reads for `work`: a plan that reads the whole queue reads all waiting jobs. */
async function countRowsRead(stores: TestJobs, work: () => Promise<unknown>): Promise<number> {
  const before = await readCounter(stores)
  await work()
  return (await readCounter(stores)) - before
}

async function readCounter({ pool }: TestJobs): Promise<number> {
  const clients = await Promise.all(Array.from({ length: pool.options.max }, () => pool.connect()))
  await Promise.all(clients.map((client) => client.query('select pg_stat_force_next_flush()')))
  for (const client of clients) client.release()
  const { rows } = await pool.query<{ read: number }>(
    'select sum(seq_tup_read + coalesce(idx_tup_fetch, 0))::float8 as read from pg_stat_user_tables',
  )
  return rows[0]?.read ?? Number.NaN
}

test('a queue without statistics that is full when its plans are made is claimed from without reading all', async (t) => {
  const stores = await openTestJobs()
  t.after(() => stores.close())
  const { id } = await stores.register()
  await stores.fill(id, 10_000)
  const read = await countRowsRead(stores, () => stores.jobs.claim(64, leaseMs))
  assert.ok(read < 2000, `rows read: ${read}`)
})

describe('a queue that was empty when its plans were made', () => {
  let stores: TestJobs
  before(async () => {
    stores = await openTestJobs()
    // The statements are planned on every connection while the tables are empty.
    await stores.pool.query('vacuum analyze jobs')
    await stores.pool.query('vacuum analyze scans')
    const { id, digest } = await stores.register()
    // Without any job, workers do not get as far as the statement that claims. This one is of a queue that none serves.
    await stores.submit(digest, { queue: 'other' })
    await Promise.all(Array.from({ length: 16 }, () => stores.jobs.claim(64, leaseMs)))
    await Promise.all(Array.from({ length: 16 }, () => stores.jobs.countJobs()))
    await stores.fill(id, 100_000)
  })
  after(() => stores.close())

  test('is claimed from and completed without reading the 100,000 that wait', async (t) => {
    const claim = await countRowsRead(stores, () => stores.jobs.claim(64, leaseMs))
    const complete = await countRowsRead(stores, async () => {
      const jobs = await stores.jobs.claim(64, leaseMs)
      await Promise.all(jobs.map((job) => stores.jobs.complete(job.lease, toCompletion(job))))
    })
    const count = await countRowsRead(stores, () => stores.jobs.countJobs())
    const about = `rows read: claim of 64 ${claim}, with completion ${complete}, count ${count}`
    t.diagnostic(about)
    assert.ok(claim < 20_000 && complete < 20_000 && count < 20_000, about)
  })

  test('is claimed from without reading all with 1,000 accounts, and says about how many wait', async (t) => {
    await stores.pool.query(
      `with made as (select gen_random_uuid() as id, gen_random_uuid() as account_id from generate_series(1, 1000)),
       recorded as (
         insert into scans (id, account_id, kind, mode, region, content_length, content_type)
         select id, account_id, 'malware', 'async', 'test', 1, 'text/plain' from made
       )
       insert into jobs (scan_id, account_id, queue, url) select id, account_id, '${testQueue}', 'https://origin.test/' from made`,
    )
    const accounts = new Set<string>()
    for (let i = 0; i < 7; i++) {
      const read = await countRowsRead(stores, async () => {
        for (const job of await stores.jobs.claim(64, leaseMs)) accounts.add(job.accountId)
      })
      t.diagnostic(`rows read: claim of 64 ${read}`)
      assert.ok(read < 20_000, String(read))
    }
    assert.ok(accounts.size >= 7 * 64 - 1, 'nobody had two before all had one')
    const { waiting } = await stores.jobs.countJobs()
    assert.ok(waiting > 70_000 && waiting < 130_000, `${waiting}`)
  })
})

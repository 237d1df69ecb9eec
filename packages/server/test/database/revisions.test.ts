import assert from 'node:assert/strict'
import { createHash, randomBytes } from 'node:crypto'
import { after, before, describe, test } from 'node:test'
import { makeHashListStore, makeListStore } from '../../src/database/hash-list-store.ts'
import { findKnown } from '../../src/database/revision-statements.ts'
import { makeRevisionStore } from '../../src/database/revision-store.ts'
import { toScanIdAt } from '../../src/database/scan-partitions.ts'
import { makeSignatureStore } from '../../src/database/signature-store.ts'
import { decideRevision, makeRevisionBody } from '../../src/domain/knowledge/hash-lists.ts'
import { makeSignatureHashes } from '../../src/domain/knowledge/import-hashes.ts'
import type { HashListStore, ListStore } from '../../src/domain/ports/hash-list-store.ts'
import type { RevisionStore } from '../../src/domain/ports/revision-store.ts'
import { newScanId, type Scan } from '../../src/domain/scans/scan.ts'
import { makeLogger } from '../../src/runtime/logger.ts'
import { openRevisionWorker } from '../../src/workers/revision-worker.ts'
import { newTestScan } from '../support/test-scan.ts'
import { openTestStores, type TestStores } from '../support/test-stores.ts'
import { waitFor } from '../support/wait-for.ts'

const toHash = (text: string) => createHash('sha256').update(text).digest('hex')
const leaseMs = 60_000
const entry = { matches: 'sha256', reason: 'seen in mail', createdBy: 'test', expiresAt: null } as const

describe('revisions', () => {
  let stores: TestStores
  let lists: HashListStore
  let entries: ListStore
  let revisions: RevisionStore
  let account: Awaited<ReturnType<TestStores['register']>>
  let listNumber = 0
  const query = async <Row extends object>(text: string, values: unknown[] = []) =>
    (await stores.database.pool.query<Row>(text, values)).rows

  before(async () => {
    stores = await openTestStores()
    lists = makeHashListStore(stores.database)
    entries = makeListStore(stores.database)
    revisions = openRevisions()
    account = await stores.register()
    await stores.accounts.updateAccount(account.id, { revisionUrl: 'https://hooks.example/revised' })
  })
  after(() => stores.close())

  const openRevisions = (change = {}) =>
    makeRevisionStore({ pool: stores.database.pool, decide: decideRevision, makeBody: makeRevisionBody, ...change })

  async function addResult(sha256: string, change: Partial<Scan> = {}): Promise<string> {
    const now = new Date()
    const metadata = { hash_sha256: sha256, ...change.metadata }
    const scan = newTestScan({
      id: newScanId(now),
      status: 'clean',
      signals: [],
      completedAt: now,
      ...change,
      metadata,
    })
    await stores.gate.admit({ keyDigest: account.digest, countsRequest: false, scan })
    return scan.id
  }

  async function addList(hashes: string[], verdict: 'bad' | 'good' = 'bad') {
    const name = `list ${++listNumber}`
    const id = await lists.beginImport({ name, verdict, origin: 'import', createdBy: 'test' })
    const rows = Buffer.from(hashes.map((hash) => `\\x${hash}\tTrojan.X\n`).join(''))
    await lists.addHashes(id, { rows, count: hashes.length })
    await lists.sortHashes(id)
    await lists.activate(id)
    return name
  }

  const readSignatureFile = (name: string, isUsedInScans = true) =>
    makeSignatureHashes({ signatures: makeSignatureStore(stores.database), hashLists: lists, isUsedInScans })(name)

  /** Does all work that is due, as the worker does. */
  async function work(store = revisions): Promise<number> {
    let revised = 0
    for (;;) {
      const [claimed] = await store.claim(leaseMs)
      if (claimed === undefined) return revised
      if (claimed.signatureFile !== null) {
        await readSignatureFile(claimed.signatureFile)
        await store.finish(claimed)
        continue
      }
      for (;;) {
        const piece = await store.runPiece(claimed)
        revised += piece.revised
        if (piece.state !== 'more') break
      }
    }
  }

  const listOf = (scanId: string) =>
    query<{ status: string; previous: string }>(
      'select status, previous_status as previous from scan_revisions where scan_id = $1 order by id',
      [scanId],
    )
  const countDeliveries = async (scanId: string) =>
    (await query('select from deliveries where scan_id = $1', [scanId])).length
  const findMetadata = async (id: string) => (await stores.scans.findScan(account.id, 'malware', id))?.metadata

  test('a hash that becomes known revises its results, and its removal revises them again', async () => {
    const hash = toHash('one')
    const [id, other] = [await addResult(hash), await addResult(toHash('other'))]
    const name = await addList([hash, toHash('never scanned')])
    assert.equal(await work(), 1)
    assert.equal(await work(), 0)
    assert.equal(await countDeliveries(id), 1)
    assert.deepEqual(await listOf(other), [])
    const found = await stores.scans.findScan(account.id, 'malware', id)
    assert.equal(found?.status, 'clean')
    assert.equal(found?.metadata?.revised_status, 'threat')
    assert.equal(found?.metadata?.revised_reason, `Hash list ${name}: Virus:Trojan.X`)
    const [delivery] = await query<{ body: string; url: string; host: string }>(
      'select body, url, host from deliveries where scan_id = $1',
      [id],
    )
    assert.equal(delivery?.host, 'hooks.example')
    assert.equal(JSON.parse(delivery?.body ?? '').metadata.revised_at, found?.metadata?.revised_at)

    await lists.remove('import', name)
    assert.equal(await work(), 1)
    assert.equal((await findMetadata(id))?.revised_status, 'clean')
    assert.deepEqual(await listOf(id), [
      { status: 'threat', previous: 'clean' },
      { status: 'clean', previous: 'threat' },
    ])
    assert.equal(await countDeliveries(id), 2)
  })

  test('entries of the block and allow lists revise, and so does their expiry', async () => {
    const hash = toHash('two')
    const id = await addResult(hash)
    const value = hash
    await entries.addEntry({ ...entry, id: newScanId(new Date()), list: 'block', value })
    assert.equal(await work(), 1)
    assert.equal((await findMetadata(id))?.revised_reason, 'Block list: seen in mail')
    await query(`update list_entries set expires_at = now() - interval '1 second' where value = $1`, [hash])
    assert.equal(await entries.deleteExpired(), 1)
    assert.equal(await work(), 1)
    assert.equal((await findMetadata(id))?.revised_status, 'clean')

    const threat = await addResult(toHash('false alarm'), { status: 'threat', signals: ['Virus:X'] })
    const allowed = { ...entry, id: newScanId(new Date()), list: 'allow', value: toHash('false alarm') } as const
    await entries.addEntry(allowed)
    assert.equal(await work(), 1)
    assert.equal((await findMetadata(threat))?.revised_status, 'clean')
    await entries.removeEntry(allowed.id)
    assert.equal(await work(), 1)
    assert.equal((await findMetadata(threat))?.revised_status, 'threat')
  })

  test('pending results, images and results of test keys are left alone', async () => {
    const hash = toHash('three')
    const ids = [
      await addResult(hash, { status: 'pending', completedAt: null }),
      await addResult(hash, { kind: 'nsfw_image' }),
      await addResult(hash, { metadata: { test: 'true' } }),
    ]
    await addList([hash])
    assert.equal(await work(), 0)
    for (const id of ids) assert.deepEqual(await listOf(id), [])
  })

  test('a second pass finds results of scans that ran during the change', async () => {
    const hash = toHash('four')
    await addList([hash])
    await work()
    const id = await addResult(hash)
    assert.equal(await work(), 0)
    await query('update revision_work set held_until = now()')
    assert.equal(await work(), 1)
    assert.equal((await listOf(id)).length, 1)
    assert.deepEqual(await query('select from revision_work'), [])
  })

  test('SHA-256 signatures of a file revise, until the file is removed', async () => {
    const signatures = makeSignatureStore(stores.database)
    const hash = toHash('five')
    const id = await addResult(hash)
    const content = Buffer.from(`${hash}:4:Own.Malware\n44d88612fea8a8f36de82e1278abb02f:68:Other\n`)
    await signatures.saveFiles([{ name: 'own.hsb', read: async () => content }])
    await work()
    assert.equal((await findMetadata(id))?.revised_reason, 'Hash list own.hsb: Virus:Own.Malware.UNOFFICIAL')
    // Engines find these hashes: scans do not look them up a second time.
    assert.equal(await lists.findHash(hash), undefined)
    // A clamd of the operator does not have the file, and scans do not find its hashes.
    await readSignatureFile('own.hsb', false)
    await work()
    assert.equal((await findMetadata(id))?.revised_status, 'clean')
    await readSignatureFile('own.hsb')
    await work()
    assert.equal((await findMetadata(id))?.revised_status, 'threat')
    await signatures.removeFile('own.hsb')
    await work()
    assert.equal((await findMetadata(id))?.revised_status, 'clean')
  })

  test('a good list counts before signatures, as in a scan', async () => {
    const signatures = makeSignatureStore(stores.database)
    const hash = toHash('false alarm of a signature')
    const id = await addResult(hash, { status: 'threat', signals: ['Virus:Own.UNOFFICIAL'] })
    await signatures.saveFiles([{ name: 'wrong.hsb', read: async () => Buffer.from(`${hash}:4:Own\n`) }])
    await work()
    assert.deepEqual(await listOf(id), [])
    const name = await addList([hash], 'good')
    await work()
    assert.equal((await findMetadata(id))?.revised_status, 'clean')
    const fresh = await addResult(hash, { metadata: { listed: `Hash list ${name}`, engines_status: 'threat' } })
    await query('update revision_work set held_until = now()')
    await work()
    assert.deepEqual(await listOf(fresh), [])
    await signatures.removeFile('wrong.hsb')
    await work()
  })

  test('the names of signatures cannot stop the work', async () => {
    const signatures = makeSignatureStore(stores.database)
    const hash = toHash('a name with a NUL')
    const id = await addResult(hash)
    const content = Buffer.from(`${hash}:4:Own\0Malware\n`)
    await signatures.saveFiles([{ name: 'nul.hsb', read: async () => content }])
    await work()
    assert.equal((await findMetadata(id))?.revised_reason, 'Hash list nul.hsb: Virus:Own Malware.UNOFFICIAL')
    await signatures.removeFile('nul.hsb')
    await work()
  })

  test('work that fails every time does not hold up other work, and leaves nothing of its imports', async () => {
    await query('delete from revision_work')
    const countRemains = async () => {
      const [row] = await query<{ lists: number; tables: number }>(
        `select (select count(*)::int from hash_lists where state = 'importing') as lists,
           (select count(*)::int from pg_class where relname like 'hash\\_import\\_%') as tables`,
      )
      return row
    }
    const before = await countRemains()
    const signatures = makeSignatureStore(stores.database)
    const broken = { ...lists, sortHashes: () => Promise.reject(new Error('fails every time')) }
    const read = async () => Buffer.from(`${toHash('cursed')}:4:Cursed\n`)
    await signatures.saveFiles([{ name: 'cursed.hsb', read }])
    const hash = toHash('waits behind')
    const id = await addResult(hash)
    await addList([hash])
    const failed = Promise.withResolvers<void>()
    const worker = openRevisionWorker({
      store: revisions,
      readSignatureFile: (name) =>
        makeSignatureHashes({ signatures, hashLists: broken, isUsedInScans: true })(name).finally(() =>
          failed.resolve(),
        ),
      onDeliveries: () => {},
      log: makeLogger({ level: 'silent', region: 'test' }),
      isOutage: () => false,
    })
    try {
      await failed.promise
      await waitFor(async () => (await listOf(id)).length === 1)
    } finally {
      await worker.close(5000)
    }
    assert.deepEqual(await countRemains(), before)
    const [held] = await query<{ pauses: boolean }>(
      `select held_until > now() and lease_token is null as pauses from revision_work where signature_file = 'cursed.hsb'`,
    )
    assert.deepEqual(held, { pauses: true })
    // Work that has stepped back comes after new work also when it is due again.
    await query(`update revision_work set held_until = now() - interval '1 second' where signature_file is not null`)
    await addList([toHash('new')])
    const [claimed] = await revisions.claim(leaseMs)
    assert.equal(claimed?.signatureFile, null)
    if (claimed !== undefined) await revisions.release([claimed])
    await work()
    await signatures.removeFile('cursed.hsb')
    await work()
  })

  test('a piece that is cut off is done again, and a lost lease changes nothing', async () => {
    const hash = toHash('six')
    const id = await addResult(hash)
    await addList([hash])
    const cut = openRevisions({
      makeBody: () => {
        throw new Error('killed')
      },
    })
    const [claimed] = await cut.claim(1)
    assert(claimed)
    await assert.rejects(cut.runPiece(claimed), /killed/)
    assert.deepEqual(await listOf(id), [])
    await query('update revision_work set held_until = now() where lease_token is not null')
    assert.equal(await work(), 1)
    assert.equal((await revisions.runPiece(claimed)).state, 'lost')
    assert.equal((await listOf(id)).length, 1)
    assert.equal(await countDeliveries(id), 1)
  })

  test('several workers revise each result once, also with more results than a piece', async () => {
    const hash = toHash('seven')
    const first = await addResult(hash)
    await query(
      `insert into scans (id, account_id, kind, mode, status, region, content_length, content_type, metadata, completed_at)
       select (substring(id::text, 1, 24) || lpad(to_hex(n), 12, '0'))::uuid, account_id, kind, mode, status, region,
         content_length, content_type, metadata, now()
       from scans cross join generate_series(1, 4500) as n where id = $1`,
      [first],
    )
    // More results than a piece reads lie between the first and the last one with the hash.
    await query(
      `insert into scans (id, account_id, kind, mode, status, region, content_length, content_type, metadata, completed_at)
       select (substring(id::text, 1, 24) || lpad(to_hex(n), 12, '0'))::uuid, account_id, kind, mode, status, region,
         content_length, content_type, '{"hash_sha256": "other"}', now()
       from scans cross join generate_series(5001, 25000) as n where id = $1`,
      [first],
    )
    await waitFor(async () => newScanId(new Date()).slice(0, 13) > first.slice(0, 13))
    await addResult(hash)
    await addList([hash, ...Array.from({ length: 1500 }, () => randomBytes(32).toString('hex'))])
    await addList([hash])
    const counts = await Promise.all([work(), work(openRevisions()), work(openRevisions())])
    for (;;) {
      const more = await work()
      if (more === 0) break
      counts.push(more)
    }
    assert.equal(
      counts.reduce((sum, count) => sum + count, 0),
      4502,
    )
    const [row] = await query<{ revisions: number; scans: number }>(
      `select count(*)::int as revisions, count(distinct scan_id)::int as scans from scan_revisions
       where scan_id in (select id from scans where metadata ->> 'hash_sha256' = $1)`,
      [hash],
    )
    assert.deepEqual(row, { revisions: 4502, scans: 4502 })
  })

  test('all new changes are one walk over the results, and a change that failed walks alone', async () => {
    await query('delete from revision_work')
    const [ofList, ofEntry, ofFailed] = ['nine', 'ten', 'eleven'].map(toHash)
    const ids = [await addResult(ofList ?? ''), await addResult(ofEntry ?? ''), await addResult(ofFailed ?? '')]
    await addList([ofFailed ?? ''])
    const [failed] = await revisions.claim(leaseMs)
    assert(failed)
    await revisions.postpone(failed)
    await query(`update revision_work set held_until = now() - interval '1 second'`)
    await addList([ofList ?? ''])
    await addList([toHash('twelve')])
    await entries.addEntry({ ...entry, id: newScanId(new Date()), list: 'block', value: ofEntry ?? '' })
    const [claimed] = await revisions.claim(leaseMs)
    assert(claimed)
    const rows = await query<{ id: string; lists: number; hashes: number; isClaimed: boolean }>(
      `select id::text, cardinality(list_ids) as lists, cardinality(hashes) as hashes,
         lease_token is not null as "isClaimed" from revision_work order by revision_work.id`,
    )
    assert.deepEqual(rows, [
      { id: failed.id, lists: 1, hashes: 0, isClaimed: false },
      { id: claimed.id, lists: 2, hashes: 1, isClaimed: true },
    ])
    await revisions.release([claimed])
    assert.equal(await work(), 3)
    for (const id of ids) assert.equal((await listOf(id)).length, 1)
    // The second pass is one walk too.
    assert.equal((await query('select from revision_work where pass = 2')).length, 2)
  })

  test('second passes and walks that were cut off come before new work', async () => {
    await query('delete from revision_work')
    await addList([toHash('second pass')])
    await work()
    await addList([toHash('cut off')])
    const [cutOff] = await revisions.claim(leaseMs)
    assert(cutOff)
    await query('update revision_work set after_scan = $2 where id = $1', [cutOff.id, newScanId(new Date(0))])
    await query(`update revision_work set held_until = now() - interval '1 second'`)
    await query(`update revision_work set held_until = now() - interval '2 seconds' where pass = 2`)
    await addList([toHash('new')])
    const order: string[] = []
    for (;;) {
      const [claimed] = await revisions.claim(leaseMs)
      if (claimed === undefined) break
      const [row] = await query<{ kind: string }>(
        `select case when pass = 2 then 'second pass' when after_scan is null then 'new' else 'cut off' end as kind
         from revision_work where id = $1`,
        [claimed.id],
      )
      order.push(row?.kind ?? '')
      while ((await revisions.runPiece(claimed)).state === 'more');
    }
    assert.deepEqual(order, ['second pass', 'cut off', 'new'])
  })

  test('a change that fails every time does not hold back the changes that it was joined with', async () => {
    await query('delete from revision_work')
    const cursed = await addResult(toHash('cursed result'))
    const texts = ['good 1', 'good 2', 'good 3', 'good 4']
    const ids = await Promise.all(texts.map((text) => addResult(toHash(text))))
    for (const text of [...texts.slice(0, 2), 'cursed result']) await addList([toHash(text)])
    for (const text of texts.slice(2)) {
      await entries.addEntry({ ...entry, id: newScanId(new Date()), list: 'block', value: toHash(text) })
    }
    const failing = openRevisions({
      decide: (result: Parameters<typeof decideRevision>[0]) => {
        if (result.scan.id === cursed) throw new Error('fails every time')
        return decideRevision(result)
      },
    })
    let failures = 0
    for (;;) {
      const [claimed] = await failing.claim(leaseMs)
      if (claimed === undefined) break
      try {
        while ((await failing.runPiece(claimed)).state === 'more');
      } catch {
        await failing.postpone(claimed)
        if (++failures === 4) break
        await query(`update revision_work set held_until = now() - interval '1 second' where pass = 1`)
      }
    }
    for (const id of ids) assert.equal((await listOf(id)).length, 1)
    const left = await query<{ lists: number; hashes: number }>(
      'select cardinality(list_ids) as lists, cardinality(hashes) as hashes from revision_work where pass = 1',
    )
    assert.deepEqual(left, [{ lists: 1, hashes: 0 }])
    await query('delete from revision_work')
  })

  test('nothing is stored or indexed for revisions with a result', async () => {
    const indexes = await query<{ name: string }>(
      `select indexname as name from pg_indexes where tablename = 'scans' order by 1`,
    )
    assert.deepEqual(
      indexes.map(({ name }) => name),
      ['scans_account', 'scans_completed', 'scans_pkey'],
    )
  })

  test('a piece reads its results by their ids, and searches hashes in a hash table', async () => {
    const rows = await query<{ 'QUERY PLAN': string }>(`explain ${findKnown}`, [
      toScanIdAt(new Date(0)),
      toScanIdAt(new Date()),
      null,
      [toHash('one')],
      ['1'],
    ])
    const plan = rows.map((row) => row['QUERY PLAN']).join('\n')
    assert.match(plan, /Index Cond: \(\(id > /)
    assert.match(plan, /hashed SubPlan/)
    assert.match(plan, /Index Cond: \(\(list_id = work.list_id\) AND \(sha256 = /)
    assert.doesNotMatch(plan, /Seq Scan on scans/)
  })

  test('revisions are listed newest first, by account', async () => {
    const other = await stores.register()
    const page = await revisions.listRevisions({ accountId: account.id, before: undefined, limit: 2 })
    assert.equal(page.length, 2)
    const rest = await revisions.listRevisions({ accountId: undefined, before: page.at(-1)?.id, limit: 1 })
    assert.ok(Number(rest[0]?.id) < Number(page[1]?.id))
    assert.deepEqual(await revisions.listRevisions({ accountId: other.id, before: undefined, limit: 5 }), [])
  })

  test('revisions of results that are no longer kept are deleted, and no others', async () => {
    const count = async () => (await query('select from scan_revisions')).length
    const before = await count()
    await query(
      `insert into scan_revisions (scan_id, account_id, status, previous_status, reason, at)
       values ($1, $2, 'threat', 'clean', 'old', now())`,
      [toScanIdAt(new Date(Date.now() - 33 * 86_400_000)), account.id],
    )
    assert.equal(await revisions.deleteOld(30), 1)
    assert.equal(await count(), before)
  })
})

import type { Pool } from 'pg'
import { v7 as newId } from 'uuid'
import type {
  ClaimedRevisionWork,
  DecideRevision,
  KnownResult,
  MakeRevisionBody,
  NewRevision,
  Revision,
  RevisionLease,
  RevisionPiece,
  RevisionStore,
} from '../domain/ports/revision-store.ts'
import { changeRows, findRow, inTransaction, listPage, listRows, type Queryable, runInPieces, toPage } from './query.ts'
import { findResults, type Piece, type WorkRow } from './revision-statements.ts'
import { lowestId } from './scan-partitions.ts'

/** Advisory lock: pieces of work run one after the other over all nodes, so that a result is revised once. */
const revisionLock = 52_115_011
/** Time after a change in which scans that began before it have ended; results of these are looked for then. */
const secondPassAfter = `interval '6 minutes'`
/** The pause after a failure is as long as the work is old, so that work which always fails is tried less and less. */
const failurePause = `greatest(interval '10 seconds', least(interval '30 minutes', now() - created_at))`
const deletePieceSize = 5000

type Deps = { pool: Pool; decide: DecideRevision; makeBody: MakeRevisionBody }

export function makeRevisionStore({ pool, decide, makeBody }: Deps): RevisionStore {
  return {
    claim: (leaseMs) =>
      inTransaction(pool, (client) => listRows<ClaimedRevisionWork>(client, claimWork, [leaseMs]), {
        lock: revisionLock,
      }),

    extend: (leases, leaseMs) =>
      listRows<RevisionLease>(
        pool,
        `update revision_work set held_until = now() + $3::float8 * interval '1 millisecond'
         from unnest($1::bigint[], $2::uuid[]) as lease (id, token)
         where revision_work.id = lease.id and lease_token = lease.token
         returning revision_work.id::text, lease_token as token`,
        [...toColumns(leases), leaseMs],
      ),

    async release(leases) {
      await changeRows(
        pool,
        `update revision_work set held_until = null, lease_token = null
         from unnest($1::bigint[], $2::uuid[]) as lease (id, token)
         where revision_work.id = lease.id and lease_token = lease.token`,
        toColumns(leases),
      )
    },

    async postpone({ id, token }) {
      await changeRows(pool, postponeWork, [id, token])
    },

    runPiece: (lease) =>
      inTransaction(pool, (client) => runPiece(client, lease, { decide, makeBody }), { lock: revisionLock }),

    async finish({ id, token }) {
      await changeRows(pool, 'delete from revision_work where id = $1 and lease_token = $2', [id, token])
    },

    listRevisions: ({ accountId, before, limit }) =>
      listPage<Revision>(pool, listRevisions, [before, accountId, limit]),

    deleteOld: (resultDays) =>
      runInPieces(deletePieceSize, () =>
        changeRows(
          pool,
          `delete from scan_revisions where id = any(array(
             select id from scan_revisions where scan_id < ${lowestId} order by scan_id limit ${deletePieceSize}
           ))`,
          // A result may have been completed a day after its beginning, and be kept as long from then on.
          [resultDays + 2],
        ),
      ),
  }
}

const toColumns = (leases: RevisionLease[]) => [leases.map(({ id }) => id), leases.map(({ token }) => token)]

/** SQL for work of which nothing was done or tried yet. */
const isNew = (work: string) =>
  `(${work}.pass = 1 and ${work}.held_until is null and ${work}.after_scan is null and ${work}.signature_file is null)`

/**
 * New work takes all other new work along, because every walk reads all results. Work that has failed walks alone, so
 * that it holds up no other. Walks and second passes that are due come before new work, which may never end. The lock
 * makes sure that `joined` deletes nothing if the row of `due` is gone.
 */
const claimWork = `
with due as (
  select id, ${isNew('revision_work')} as is_new from revision_work
  where (held_until is null or held_until <= now())
    and not exists (select from revision_work where lease_token is not null and held_until > now())
  order by (pass = 2 or after_scan is not null) desc, held_until nulls first, id limit 1
  for update
),
joined as (
  delete from revision_work as other using due
  where is_new and other.id <> due.id and ${isNew('other')}
  returning list_ids, hashes, created_at
)
update revision_work set lease_token = gen_random_uuid(), held_until = now() + $1::float8 * interval '1 millisecond',
  list_ids = list_ids || array(select unnest(list_ids) from joined),
  hashes = hashes || array(select unnest(hashes) from joined),
  created_at = least(created_at, (select min(created_at) from joined))
where id = (select id from due)
returning id::text, lease_token as token, signature_file as "signatureFile"
`

/**
 * Work of several changes is halved when it fails: lists and hashes part first, then either in two. After a few
 * failures the change that fails every time walks alone, and the others are done.
 */
const postponeWork = `
with failed as (
  select id, list_ids, hashes, pass, created_at, after_scan, now() + ${failurePause} as pause_end,
    case when hashes = '{}' then (cardinality(list_ids) + 1) / 2 else cardinality(list_ids) end as kept_lists,
    case when list_ids = '{}' then (cardinality(hashes) + 1) / 2 else 0 end as kept_hashes
  from revision_work where id = $1 and lease_token = $2 for update
),
parted as (
  insert into revision_work (list_ids, hashes, pass, created_at, after_scan, held_until)
  select list_ids[kept_lists + 1:], hashes[kept_hashes + 1:], pass, created_at, after_scan, pause_end from failed
  where kept_lists < cardinality(list_ids) or kept_hashes < cardinality(hashes)
)
update revision_work set held_until = pause_end, lease_token = null,
  list_ids = failed.list_ids[:kept_lists], hashes = failed.hashes[:kept_hashes]
from failed where revision_work.id = failed.id
`

async function runPiece(
  client: Queryable,
  { id, token }: RevisionLease,
  { decide, makeBody }: Omit<Deps, 'pool'>,
): Promise<RevisionPiece> {
  const work = await findRow<WorkRow>(
    client,
    `select id::text, list_ids::text[] as "listIds", array(select encode(unnest(hashes), 'hex')) as hashes, pass,
       created_at as "createdAt", after_scan as "afterScan",
       date_trunc('milliseconds', now()) as now
     from revision_work where id = $1 and lease_token = $2 for update`,
    [id, token],
  )
  if (work === undefined) return { state: 'lost', revised: 0, deliveries: 0 }
  const piece = await findResults(client, work)
  const revised = piece.results.flatMap((result) => {
    const revision = decide(result)
    return revision === undefined ? [] : [{ result, revision }]
  })
  const deliveries = await record(client, revised, work.now, makeBody)
  const state = await moveOn(client, work, piece)
  return { state, revised: revised.length, deliveries }
}

type Revised = { result: KnownResult; revision: NewRevision }

/** Returns how many deliveries were recorded. */
async function record(client: Queryable, revised: Revised[], at: Date, makeBody: MakeRevisionBody): Promise<number> {
  if (revised.length === 0) return 0
  const revisions = revised.map(({ result, revision }) => ({
    scan_id: result.scan.id,
    account_id: result.accountId,
    status: revision.status,
    previous_status: result.revisedStatus ?? result.scan.status,
    reason: revision.reason,
    at,
  }))
  await changeRows(
    client,
    `insert into scan_revisions (scan_id, account_id, status, previous_status, reason, at)
     select scan_id, account_id, status, previous_status, reason, at from json_to_recordset($1::json) as revision
       (scan_id uuid, account_id uuid, status text, previous_status text, reason text, at timestamptz)`,
    [JSON.stringify(revisions)],
  )
  const deliveries = revised.flatMap(({ result, revision }) => {
    const { scan, accountId, revisionUrl: url } = result
    if (url === null) return []
    const body = makeBody(result, revision, at)
    return [{ id: newId(), scan_id: scan.id, account_id: accountId, url, host: new URL(url).host, body }]
  })
  if (deliveries.length === 0) return 0
  return changeRows(
    client,
    `insert into deliveries (id, scan_id, account_id, url, host, body)
     select id, scan_id, account_id, url, host, body from json_to_recordset($1::json) as delivery
       (id uuid, scan_id uuid, account_id uuid, url text, host text, body text)`,
    [JSON.stringify(deliveries)],
  )
}

async function moveOn(client: Queryable, { id, pass }: WorkRow, piece: Piece): Promise<'more' | 'done'> {
  if (!piece.isLast) {
    await changeRows(client, 'update revision_work set after_scan = $2 where id = $1', [id, piece.afterScan])
    return 'more'
  }
  if (pass === 1) {
    await changeRows(
      client,
      `update revision_work set pass = 2, after_scan = null, lease_token = null,
         held_until = now() + ${secondPassAfter}
       where id = $1`,
      [id],
    )
  } else await changeRows(client, 'delete from revision_work where id = $1', [id])
  return 'done'
}

const page = toPage('scan_revisions', { columns: ['id'], order: 'desc', cursor: '$1::bigint', limit: '$3' })

const listRevisions = `
select scan_revisions.id::text, scan_id as "scanId", scan_revisions.account_id as "accountId",
  accounts.name as "accountName", scan_revisions.status, previous_status as "previousStatus", reason, at,
  scans.content_name as "contentName", scans.metadata ->> 'hash_sha256' as sha256
from scan_revisions
join accounts on accounts.id = scan_revisions.account_id
left join scans on scans.id = scan_id
where ($2::uuid is null or scan_revisions.account_id = $2) and ${page.condition}
${page.ordering}
`

import type { KnownHash } from '../domain/ports/hash-list-store.ts'
import type { KnownResult } from '../domain/ports/revision-store.ts'
import { findRow, listRows, type Queryable } from './query.ts'
import { toScanIdAt } from './scan-partitions.ts'
import { scanFields } from './scan-store.ts'

/** Work on changes, with its place. `now` is the time of the transaction. */
export type WorkRow = {
  id: string
  listIds: string[]
  hashes: string[]
  pass: number
  createdAt: Date
  afterScan: string | null
  now: Date
}

/** Results of one transaction, and the place after them. */
export type Piece = {
  results: KnownResult[]
  isLast: boolean
  afterScan: string | null
}

/** Results that one piece reads, and those that it may find. */
const readPerPiece = 20_000
const foundPerPiece = 2000
const dayMs = 86_400_000
const minuteMs = 60_000
const highestId = 'ffffffff-ffff-ffff-ffff-ffffffffffff'

/**
 * Reads the next results in the order of their ids, and finds those with the hashes of the work. An index of the hashes
 * would find them sooner, and would cost every scan, also where nothing is ever revised.
 */
export async function findResults(client: Queryable, work: WorkRow): Promise<Piece> {
  // Jobs are given up after a day, so the results of the second pass are not older.
  const first = work.pass === 1 ? new Date(0) : new Date(work.createdAt.getTime() - dayMs)
  const from = work.afterScan ?? toScanIdAt(first)
  const end = await findRow<{ id: string }>(client, findPieceEnd, [from])
  const rows = await listRows<ResultRow>(client, findKnown, [
    from,
    end?.id ?? highestId,
    // In the second pass only results count that were completed since the change.
    work.pass === 1 ? null : new Date(work.createdAt.getTime() - minuteMs),
    work.hashes,
    work.listIds,
  ])
  const results = rows.slice(0, foundPerPiece).map(toResult)
  if (rows.length > foundPerPiece) return { results, isLast: false, afterScan: results.at(-1)?.scan.id ?? null }
  return { results, isLast: end === undefined, afterScan: end?.id ?? null }
}

const findPieceEnd = `select id from scans where id > $1::uuid order by id limit 1 offset ${readPerPiece - 1}`

type ResultRow = KnownResult['scan'] &
  Pick<KnownResult, 'accountId' | 'revisedStatus' | 'blocked' | 'allowed' | 'revisionUrl'> & {
    known: KnownHash | null
    signature: KnownHash | null
  }

function toResult(row: ResultRow): KnownResult {
  const { accountId, revisedStatus, blocked, allowed, revisionUrl, known, signature, ...scan } = row
  return { scan, accountId, revisedStatus, blocked, allowed, known, signature, revisionUrl }
}

/** Completed malware results of live keys; a time for the earliest completion may be given. */
const isRevisable = (since: string) => `scans.kind = 'malware' and scans.status <> 'pending'
    and scans.metadata ->> 'test' is distinct from 'true'
    and (${since}::timestamptz is null or scans.completed_at >= ${since})`

/**
 * SQL for the bytes of a hash; null for a text that is none, so that no result can stop the work. Trimming bytes takes a
 * tenth of the time of a regular expression.
 */
const toBytes = (hex: string) =>
  `decode(case when length(${hex}) = 64 and btrim(convert_to(${hex}, 'UTF8'), '0123456789abcdef'::bytea) = ''
    then ${hex} end, 'hex')`

/** The entry of the hash that counts among the lists of one origin: a bad one before a good one. */
const findListed = (origin: 'import' | 'signatures') => `(
    select json_build_object('verdict', verdict, 'name', found.name, 'list', hash_lists.name)
    from hash_lists cross join lateral (
      select name from listed_hashes where list_id = hash_lists.id and sha256 = ${toBytes('hex')} limit 1
    ) as found
    where state = 'active' and origin = '${origin}' order by verdict, hash_lists.id limit 1
  )`

/** The knowledge of now about each hash of `candidate`, once for each hash. */
const knowledge = `
hash as materialized (
  select hex,
    (select reason from list_entries where list = 'block' and matches = 'sha256' and value = hex
       and (expires_at is null or expires_at > now())) as blocked,
    (select reason from list_entries where list = 'allow' and matches = 'sha256' and value = hex
       and (expires_at is null or expires_at > now())) as allowed,
    ${findListed('import')} as known,
    ${findListed('signatures')} as signature
  from (select distinct metadata ->> 'hash_sha256' as hex from candidate) as hashes
)
select ${scanFields.replaceAll('scans.', 'candidate.')}, candidate.account_id as "accountId",
  (select status from scan_revisions where scan_id = candidate.id order by scan_revisions.id desc limit 1)
    as "revisedStatus",
  blocked, allowed, known, signature, revision_url as "revisionUrl"
from candidate
join hash on hash.hex = candidate.metadata ->> 'hash_sha256'
join accounts on accounts.id = candidate.account_id
order by candidate.id`

/** The subquery of the hashes is read once and kept as a hash table; an array would be searched for every result. */
export const findKnown = `
with candidate as materialized (
  select scans.* from scans
  where scans.id > $1::uuid and scans.id <= $2::uuid and ${isRevisable('$3')} and (
    scans.metadata ->> 'hash_sha256' in (select unnest($4::text[]))
    or exists (
      select from unnest($5::bigint[]) as work (list_id) cross join lateral (
        select from listed_hashes
        where list_id = work.list_id and sha256 = ${toBytes("scans.metadata ->> 'hash_sha256'")} limit 1
      ) as listed
    )
  )
  order by scans.id limit ${foundPerPiece + 1}
),
${knowledge}`

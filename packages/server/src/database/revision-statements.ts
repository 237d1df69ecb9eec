import type { KnownHash } from '../domain/ports/hash-list-store.ts'
import type { KnownResult } from '../domain/ports/revision-store.ts'
import { listRows, type Queryable } from './query.ts'
import { toScanIdAt } from './scan-partitions.ts'
import { scanFields } from './scan-records.ts'

/** Work on a change, with its place. `now` is the time of the transaction. */
export type WorkRow = {
  id: string
  listId: string | null
  hashes: Buffer[] | null
  pass: number
  createdAt: Date
  afterSha256: Buffer | null
  afterScan: string | null
  listHashes: number
  now: Date
}

/** Results of one transaction, and the place after them. */
export type Piece = {
  results: KnownResult[]
  isLast: boolean
  afterSha256: Buffer | null
  afterScan: string | null
}

/** Hashes that one piece looks for, and results that it may find. */
const hashesPerPiece = 1000
const resultsPerPiece = 2000
/**
 * A list with more hashes is compared result by result: each result costs one look into the index of the list, while
 * each hash of the list would cost one look into the index of every partition of the results.
 */
const maxSoughtHashes = 20_000
const dayMs = 86_400_000
const minuteMs = 60_000

export function findResults(client: Queryable, work: WorkRow): Promise<Piece> {
  return work.listHashes > maxSoughtHashes ? walkResults(client, work) : seekHashes(client, work)
}

/** In the second pass only results count that were completed since the change. */
const findSince = ({ pass, createdAt }: WorkRow) => (pass === 1 ? null : new Date(createdAt.getTime() - minuteMs))

/** Looks for the next hashes of the change in the index of the results. */
async function seekHashes(client: Queryable, work: WorkRow): Promise<Piece> {
  const hashes = await listHashes(client, work)
  const isLastHashes = hashes.length < hashesPerPiece
  // After a hash with very many results, it is the only one of the piece until all of them are read.
  let taken = work.afterScan === null ? hashes : hashes.slice(0, 1)
  for (;;) {
    const rows = await listRows<ResultRow>(client, seekResults, [
      taken,
      findSince(work),
      work.afterScan,
      resultsPerPiece + 1,
    ])
    const isWhole = rows.length <= resultsPerPiece
    if (!isWhole && taken.length > 1) {
      taken = taken.slice(0, Math.floor(taken.length / 2))
      continue
    }
    const results = rows.slice(0, resultsPerPiece).map(toResult)
    if (!isWhole) {
      return {
        results,
        isLast: false,
        afterSha256: work.afterSha256,
        afterScan: results.at(-1)?.scan.id ?? null,
      }
    }
    const isLast = isLastHashes && taken.length === hashes.length
    return { results, isLast, afterSha256: taken.at(-1) ?? null, afterScan: null }
  }
}

const listHashes = async (client: Queryable, { listId, hashes, afterSha256 }: WorkRow): Promise<Buffer[]> => {
  const after = afterSha256 ?? Buffer.alloc(0)
  const rows =
    listId === null
      ? await listRows<{ sha256: Buffer }>(
          client,
          `select distinct sha256 from unnest($1::bytea[]) as hash (sha256) where sha256 > $2
           order by sha256 limit ${hashesPerPiece}`,
          [hashes, after],
        )
      : await listRows<{ sha256: Buffer }>(
          client,
          `select sha256 from listed_hashes where list_id = $1 and sha256 > $2 order by sha256 limit ${hashesPerPiece}`,
          [listId, after],
        )
  return rows.map(({ sha256 }) => sha256)
}

/** Reads the results in the order of their ids, and keeps those whose hash is in the list. */
async function walkResults(client: Queryable, work: WorkRow): Promise<Piece> {
  // Jobs are given up after a day, so the results of the second pass are not older.
  const first = work.pass === 1 ? new Date(0) : new Date(work.createdAt.getTime() - dayMs)
  const from = work.afterScan ?? toScanIdAt(first)
  const walked = await listRows<{ id: string }>(
    client,
    `select id from scans where id > $1::uuid order by id limit ${resultsPerPiece}`,
    [from],
  )
  const last = walked.at(-1)?.id
  const rows =
    last === undefined ? [] : await listRows<ResultRow>(client, walkListed, [from, last, findSince(work), work.listId])
  return {
    results: rows.map(toResult),
    isLast: walked.length < resultsPerPiece,
    afterSha256: null,
    afterScan: last ?? work.afterScan,
  }
}

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
 * SQL for the bytes of a hash; null for a text that is none, so that no result can stop the work. A regular expression
 * would take ten times as long.
 */
const toBytes = (hex: string) =>
  `decode(case when length(${hex}) = 64 and translate(${hex}, '0123456789abcdef', '') = '' then ${hex} end, 'hex')`

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

export const seekResults = `
with candidate as materialized (
  select scans.* from scans
  where hash_key = any(array(select hashtextextended(encode(sha256, 'hex'), 0) from unnest($1::bytea[]) as h (sha256)))
    and metadata ->> 'hash_sha256' = any(array(select encode(sha256, 'hex') from unnest($1::bytea[]) as h (sha256)))
    and ${isRevisable('$2')} and ($3::uuid is null or scans.id > $3)
  order by scans.id limit $4
),
${knowledge}`

const walkListed = `
with candidate as materialized (
  select scans.* from scans
  cross join lateral (
    select from listed_hashes
    where list_id = $4::bigint and sha256 = ${toBytes("scans.metadata ->> 'hash_sha256'")} limit 1
  ) as listed
  where scans.id > $1::uuid and scans.id <= $2::uuid and ${isRevisable('$3')}
),
${knowledge}`

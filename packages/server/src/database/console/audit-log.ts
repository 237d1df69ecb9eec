import { hash } from 'node:crypto'
import type { Pool } from 'pg'
import type { AuditHead, AuditLog, AuditRecord, AuditVerification } from '../../domain/ports/operations.ts'
import {
  afterCommit,
  atomically,
  findRow,
  inTransaction,
  listPage,
  listRows,
  type Queryable,
  toPage,
  toPattern,
} from '../query.ts'

/** `onNoted` gets the head of the log after each entry, for a place that cannot be changed with the database. */
export function makeAuditLog({ pool, onNoted }: { pool: Pool; onNoted?(head: AuditHead): void }): AuditLog {
  return {
    atomically: (work) => atomically(pool, work),
    async note({ actor, action, target, accountId, detail, address }) {
      const row = await findRow<{ id: string; hash: string }>(
        pool,
        `insert into audit_log (actor, action, target, account_id, detail, address) values ($1, $2, $3, $4, $5, $6)
         returning id, encode(hash, 'hex') as hash`,
        [actor, action, target, accountId, detail, address],
      )
      if (row !== undefined) afterCommit(() => onNoted?.({ id: Number(row.id), hash: row.hash }))
    },
    verify: (anchor) => verifyAuditChain(pool, anchor),
    listOfAccount: (accountId, { actions, since, limit }) =>
      listRows<AuditRecord>(pool, listRecordsOfAccount, [accountId, actions, since, limit]),
    list: ({ action, actor, from, to }, { before, limit }) =>
      listPage<AuditRecord>(pool, listRecords, [before, action, limit, toPattern(actor), from, to]),
  }
}

const page = toPage('audit_log', { columns: ['id'], order: 'desc', cursor: '$1::bigint', limit: '$3' })

const selectRecords = `
select audit_log.id::text, at, actor, action, target, accounts.name as "accountName", detail, address
from audit_log left join accounts on accounts.id = account_id`

const listRecordsOfAccount = `${selectRecords}
where account_id = $1 and action = any ($2) and ($3::timestamptz is null or date_trunc('milliseconds', at) > $3)
order by audit_log.id desc limit $4
`

const listRecords = `${selectRecords}
where ${page.condition} and ($2::text is null or starts_with(action, $2)) and ($4::text is null or actor ilike $4)
  and ($5::timestamptz is null or at >= $5) and ($6::timestamptz is null or at < $6)
${page.ordering}
`

const rowsAtOnce = 1000
const noHash = '0'.repeat(64)

/**
 * Computes the chain of the audit log again, as the trigger of the table did, and compares it with the rows and with
 * the recorded head. `anchor` is a head that was printed before: somebody who can change the database can also compute
 * a new chain, but not one with a head that is kept elsewhere.
 */
function verifyAuditChain(pool: Pool, anchor: AuditHead | undefined): Promise<AuditVerification> {
  const options = { mode: 'isolation level repeatable read, read only', settings: ['statement_timeout = 0'] }
  return inTransaction(pool, (client) => verify(client, anchor), options)
}

async function verify(db: Queryable, anchor: AuditHead | undefined): Promise<AuditVerification> {
  let head: AuditHead = { id: 0, hash: noHash }
  for (;;) {
    const rows = await listRows<ChainRow>(db, listChain, [head.id, rowsAtOnce])
    for (const row of rows) {
      const fault = findFault(row, head, anchor)
      if (fault !== undefined) return { rows: head.id, head, fault }
      head = { id: Number(row.id), hash: row.hash }
    }
    if (rows.length < rowsAtOnce) break
  }
  return { rows: head.id, head, fault: await findEndFault(db, head, anchor) }
}

function findFault(row: ChainRow, before: AuditHead, anchor: AuditHead | undefined): string | undefined {
  const expected = before.id + 1
  if (Number(row.id) !== expected) return `Row ${expected} of the audit log is missing.`
  if (toHash(row, before.hash) !== row.hash) return `Row ${row.id} of the audit log, or the one before, was changed.`
  if (anchor?.id === expected && anchor.hash !== row.hash) {
    return `Row ${row.id} of the audit log is not the one that the given head names: the log was written anew.`
  }
  return undefined
}

async function findEndFault(db: Queryable, last: AuditHead, anchor: AuditHead | undefined) {
  const recorded = await findRow<{ id: string; hash: string }>(
    db,
    `select id, encode(hash, 'hex') as hash from audit_head`,
  )
  if (recorded === undefined) return 'The recorded head of the audit log is missing.'
  const lastRow = `The audit log ends with row ${last.id}`
  if (anchor !== undefined && anchor.id > last.id) return `${lastRow}, but the given head is row ${anchor.id}.`
  if (Number(recorded.id) !== last.id) return `${lastRow}, but ${recorded.id} rows were written: the last are missing.`
  return recorded.hash === last.hash ? undefined : 'The last row of the audit log is not the one that was written last.'
}

/** The same text as `json_build_array` in the trigger, which separates values by a comma and a blank. */
function toHash(row: ChainRow, previousHash: string): string {
  const texts = [row.at, row.actor, row.action, row.target, row.accountId, row.detail, row.address]
  const values = [JSON.stringify(previousHash), row.id, ...texts.map((text) => JSON.stringify(text))]
  return hash('sha256', `[${values.join(', ')}]`)
}

type ChainRow = {
  id: string
  at: string
  actor: string
  action: string
  target: string | null
  accountId: string | null
  detail: string | null
  address: string | null
  hash: string
}

const listChain = `
select id::text, to_char(at at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.US') as at, actor, action, target,
  account_id::text as "accountId", detail, address, encode(hash, 'hex') as hash
from audit_log where id > $1 order by audit_log.id limit $2
`

import { hash } from 'node:crypto'
import type { Pool } from 'pg'
import type { AuditHead, AuditVerification } from '../../domain/ports/audit-log.ts'
import { findRow, inTransaction, listRows, type Queryable } from '../query.ts'

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

const rowsAtOnce = 1000
const noHash = '0'.repeat(64)

/**
 * Computes the chain of the audit log again, as the trigger of the table did, and compares it with the rows and with
 * the recorded head. `anchor` is a head that was printed before: somebody who can change the database can also compute
 * a new chain, but not one with a head that is kept elsewhere.
 */
export function verifyAuditChain(pool: Pool, anchor: AuditHead | undefined): Promise<AuditVerification> {
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

const listChain = `
select id::text, to_char(at at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.US') as at, actor, action, target,
  account_id::text as "accountId", detail, address, encode(hash, 'hex') as hash
from audit_log where id > $1 order by audit_log.id limit $2
`

import type { Pool } from 'pg'
import {
  type CredentialValues,
  maxCredentials,
  readTarget,
  showValues,
  toTargetText,
} from '../domain/downloads/target.ts'
import type { Binding, DownloadCredentialStore, Sealer } from '../domain/ports/secret-store.ts'
import { changeRows, findRow, inTransaction, listRows, type Queryable } from './query.ts'

type Row = { id: string; target: string; region: string | null; createdAt: Date; createdBy: string }
type Sealed = Pick<Row, 'target' | 'region'> & { sealed: Buffer }

export function makeDownloadCredentialStore({ pool, sealer }: { pool: Pool; sealer: Sealer }): DownloadCredentialStore {
  return {
    async list(accountId) {
      const rows = await listRows<Pick<Row, 'id' | 'target' | 'region'>>(pool, listCredentials, [accountId])
      return rows.flatMap(({ id, target: text, region }) => {
        const target = readTarget(text, region)
        return typeof target === 'string' ? [] : [{ id, target }]
      })
    },

    async show(accountId) {
      const rows = await listRows<Row & Sealed>(pool, listSealed, [accountId])
      return Promise.all(
        rows.map(async ({ sealed, ...row }) => {
          const isValid = typeof readTarget(row.target, row.region) !== 'string'
          const values = await open(accountId, { ...row, sealed })
          return { ...row, values: isValid && values !== 'sealed' ? showValues(values) : null }
        }),
      )
    },

    async open(accountId, id) {
      const row = await findRow<Sealed>(pool, findSealed, [accountId, id])
      return row && open(accountId, row)
    },

    async put(accountId, { id, target, values, createdBy }) {
      const row = { target: toTargetText(target), region: target.kind === 's3' ? target.region : null }
      const sealed = await sealer.seal(Buffer.from(JSON.stringify(values)), downloadCredentialOf({ accountId, ...row }))
      return inTransaction(pool, async (client) => {
        // The lock makes additions to one account wait for each other, so that they are counted.
        const account = await findRow(client, 'select from accounts where id = $1 for no key update', [accountId])
        if (account === undefined) return 'no-account'
        const columns = [accountId, row.target, row.region, sealed, createdBy]
        const replaced = await findRow<{ id: string }>(client, replaceCredential, columns)
        if (replaced !== undefined) return { id: replaced.id, isReplaced: true }
        if ((await countCredentials(client, accountId)) >= maxCredentials) return 'full'
        await changeRows(client, insertCredential, [id, ...columns])
        return { id, isReplaced: false }
      })
    },

    async remove(accountId, id) {
      const text = 'delete from download_credentials where account_id = $1 and id = $2 returning target'
      return (await findRow<Pick<Row, 'target'>>(pool, text, [accountId, id]))?.target
    },
  }

  async function open(accountId: string, { sealed, target, region }: Sealed): Promise<CredentialValues | 'sealed'> {
    try {
      return JSON.parse(String(await sealer.open(sealed, downloadCredentialOf({ accountId, target, region }))))
    } catch {
      return 'sealed'
    }
  }
}

/** Values open for their account and target only: whoever changes a row cannot direct them to another host. */
export const downloadCredentialOf = (row: { accountId: string; target: string; region: string | null }): Binding => [
  'download_credentials.sealed',
  row.accountId,
  row.target,
  row.region ?? '',
]

const countCredentials = async (db: Queryable, accountId: string): Promise<number> =>
  changeRows(db, 'select from download_credentials where account_id = $1', [accountId])

const listCredentials = `
-- name: list-download-credentials
select id, target, region from download_credentials where account_id = $1
`

const listSealed = `
select id, target, region, created_at as "createdAt", created_by as "createdBy", sealed
from download_credentials where account_id = $1 order by created_at, id
`

const findSealed = `
-- name: find-download-credential
select target, region, sealed from download_credentials where account_id = $1 and id = $2
`

const replaceCredential = `
update download_credentials set region = $3, sealed = $4, created_by = $5, created_at = now()
where account_id = $1 and target = $2 returning id
`

const insertCredential = `
insert into download_credentials (id, account_id, target, region, sealed, created_by) values ($1, $2, $3, $4, $5, $6)
`

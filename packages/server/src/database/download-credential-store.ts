import type { Pool } from 'pg'
import { type DownloadTarget, readTarget, toTargetText } from '../domain/downloads/target.ts'
import { type CredentialValues, maxCredentials, showValues } from '../domain/downloads/values.ts'
import type { DownloadCredential, DownloadCredentialStore } from '../domain/ports/download-credential-store.ts'
import type { Binding, Sealer } from '../domain/ports/sealer.ts'
import { changeRows, findRow, inTransaction, listRows, type Queryable } from './query.ts'

type Row = { id: string; target: string; region: string | null; createdAt: Date; createdBy: string }
type Sealed = Pick<Row, 'target' | 'region'> & { sealed: Buffer }

export function makeDownloadCredentialStore({ pool, sealer }: { pool: Pool; sealer: Sealer }): DownloadCredentialStore {
  return {
    list: async (accountId) => (await listRows<Row>(pool, listCredentials, [accountId])).map(toCredential),

    async show(accountId) {
      const rows = await listRows<Row & Sealed>(pool, listSealed, [accountId])
      return Promise.all(
        rows.map(async (row) => {
          const values = await open(accountId, row).catch(() => undefined)
          return { ...toCredential(row), values: values === undefined ? null : showValues(values) }
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
        const columns = [id, accountId, row.target, row.region, sealed, createdBy]
        if ((await changeRows(client, replaceCredential, columns)) > 0) return 'replaced'
        if ((await countCredentials(client, accountId)) >= maxCredentials) return 'full'
        await changeRows(client, insertCredential, columns)
        return 'added'
      })
    },

    async remove(accountId, id) {
      const text = 'delete from download_credentials where account_id = $1 and id = $2 returning target, region'
      const row = await findRow<Pick<Row, 'target' | 'region'>>(pool, text, [accountId, id])
      return row && toTarget(row)
    },
  }

  async function open(accountId: string, { sealed, target, region }: Sealed): Promise<CredentialValues> {
    return JSON.parse(String(await sealer.open(sealed, downloadCredentialOf({ accountId, target, region }))))
  }
}

/** Values open for their account and target only: whoever changes a row cannot direct them to another host. */
export const downloadCredentialOf = (row: { accountId: string; target: string; region: string | null }): Binding => [
  'download_credentials.sealed',
  row.accountId,
  row.target,
  row.region ?? '',
]

function toTarget({ target: text, region }: Pick<Row, 'target' | 'region'>): DownloadTarget {
  const target = readTarget(text, region)
  if (typeof target === 'string') throw new Error(`The target of a download credential is not valid: ${text}`)
  return target
}

const toCredential = (row: Row): DownloadCredential => ({
  id: row.id,
  target: toTarget(row),
  createdAt: row.createdAt,
  createdBy: row.createdBy,
})

const countCredentials = async (db: Queryable, accountId: string): Promise<number> =>
  changeRows(db, 'select from download_credentials where account_id = $1', [accountId])

const columns = 'id, target, region, created_at as "createdAt", created_by as "createdBy"'

const listCredentials = `
-- name: list-download-credentials
select ${columns} from download_credentials where account_id = $1
`

const listSealed = `
select ${columns}, sealed from download_credentials where account_id = $1 order by created_at, id
`

const findSealed = `
-- name: find-download-credential
select target, region, sealed from download_credentials where account_id = $1 and id = $2
`

const replaceCredential = `
update download_credentials set id = $1, region = $4, sealed = $5, created_by = $6, created_at = now()
where account_id = $2 and target = $3
`

const insertCredential = `
insert into download_credentials (id, account_id, target, region, sealed, created_by) values ($1, $2, $3, $4, $5, $6)
`

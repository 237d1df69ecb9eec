import type { Pool, PoolClient } from 'pg'
import type { Link, MemberStore } from '../../domain/ports/member-store.ts'

type LinkStore = Pick<MemberStore, 'addLink' | 'findLink' | 'listLinks' | 'removeLink' | 'acceptLink' | 'acceptReset'>

const selectLink = `
  select console_links.id, purpose, role, account_id as "accountId", accounts.name as "accountName",
    member_id as "memberId", email, console_links.created_at as "createdAt", console_links.expires_at as "expiresAt"
  from console_links left join accounts on accounts.id = account_id`

const uniqueViolation = '23505'

export function makeLinkStore({ pool }: { pool: Pool }): LinkStore {
  return {
    async addLink({ id, digest, purpose, role, accountId, memberId, email, createdAt, expiresAt }) {
      await pool.query(
        `with replaced as (
           delete from console_links where purpose = $3 and account_id is not distinct from $5
             and member_id is not distinct from $6 and (purpose <> 'invitation' or lower(email) = lower($7))
         )
         insert into console_links (id, digest, purpose, role, account_id, member_id, email, created_at, expires_at)
         values ($1, decode($2, 'hex'), $3, $4, $5, $6, $7, $8, $9)`,
        [id, digest, purpose, role, accountId, memberId, email, createdAt, expiresAt],
      )
    },
    async findLink(digest, now) {
      const where = `where digest = decode($1, 'hex') and console_links.expires_at > $2`
      return (await pool.query<Link>(`${selectLink} ${where}`, [digest, now])).rows[0]
    },
    async listLinks(accountId, now) {
      const where = `where account_id = $1 and console_links.expires_at > $2 and purpose = 'invitation'`
      return (await pool.query<Link>(`${selectLink} ${where} order by console_links.created_at desc`, [accountId, now]))
        .rows
    },
    async removeLink(accountId, id) {
      const { rowCount } = await pool.query('delete from console_links where account_id = $1 and id = $2', [
        ...[accountId, id],
      ])
      return rowCount === 1
    },
    acceptLink: (digest, now, { id, accountId, role, email, name, passwordHash }) =>
      useUp(digest, now, (client) =>
        client.query(
          `insert into members (id, account_id, role, email, name, password_hash, created_at)
           values ($1, $2, $3, $4, $5, $6, $7)`,
          [id, accountId, role, email, name, passwordHash, now],
        ),
      ).catch((error: { code?: string }) => {
        if (error.code !== uniqueViolation) throw error
        return 'taken' as const
      }),
    acceptReset: (digest, now, passwordHash) =>
      useUp(digest, now, (client, { memberId }) =>
        client.query('update members set password_hash = $2 where id = $1', [memberId, passwordHash]),
      ),
  }

  /** Of two that come with the same link one finds it. */
  async function useUp(digest: string, now: Date, work: (client: PoolClient, link: Used) => Promise<unknown>) {
    const client = await pool.connect()
    try {
      await client.query('begin')
      const { rows } = await client.query<Used>(
        `delete from console_links where digest = decode($1, 'hex') and expires_at > $2 returning member_id as "memberId"`,
        [digest, now],
      )
      const [link] = rows
      if (link !== undefined) await work(client, link)
      await client.query('commit')
      return link === undefined ? ('gone' as const) : ('accepted' as const)
    } catch (error) {
      await client.query('rollback').catch(() => {})
      throw error
    } finally {
      client.release()
    }
  }
}

type Used = { memberId: string | null }

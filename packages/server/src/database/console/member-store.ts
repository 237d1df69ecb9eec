import type { Pool, PoolClient } from 'pg'
import type { AccountMember, Member, MemberStore, Membership, Removal } from '../../domain/ports/member-store.ts'
import type { Binding, Sealer } from '../../domain/ports/secret-store.ts'
import { changeRows, findRow, inTransaction, listRows } from '../query.ts'
import { makeLinkStore } from './link-store.ts'
import {
  findMember,
  hasOtherOperator,
  hasOtherOwner,
  lockMembers,
  makeSessionStore,
  memberColumns,
  selectMember,
  selectMembership,
  setPassword,
} from './session-store.ts'

export function makeMemberStore({ pool, sealer }: { pool: Pool; sealer: Sealer }): MemberStore {
  return {
    ...makeSessionStore({ pool }),
    ...makeLinkStore({ pool }),
    async findFirstOperatorAccount() {
      const row = await findRow<{ hasOperator: boolean; accountId: string | null }>(
        pool,
        `select exists (select from members where is_operator) as "hasOperator",
           (select id from accounts order by created_at, id limit 1) as "accountId"`,
      )
      return row?.hasOperator === false ? { accountId: row.accountId } : undefined
    },
    findByEmail: (email) => findRow<Member>(pool, `${selectMember} where lower(email) = lower($1)`, [email]),
    findMember: (id) => findMember(pool, id),
    listMembers: (accountId) =>
      listRows<AccountMember>(
        pool,
        `select ${memberColumns}, memberships.role from members join memberships on member_id = members.id
         where account_id = $1 order by memberships.created_at`,
        [accountId],
      ),
    listMemberships: (memberId) =>
      listRows<Membership>(pool, `${selectMembership} where member_id = $1 order by memberships.created_at`, [
        memberId,
      ]),
    listOperators: () => listRows<Member>(pool, `${selectMember} where is_operator order by created_at`),
    suspendOperator: (id, isSuspended, { mayBeLast = !isSuspended } = {}) =>
      inTransaction(pool, async (client) => {
        await lockMembers(client)
        if (!mayBeLast && !(await hasOtherOperator(client, id))) return 'last'
        const text = 'update members set suspended_at = case when $2 then now() end where id = $1 and is_operator'
        if ((await changeRows(client, text, [id, isSuspended])) === 0) return 'not-found'
        if (isSuspended) await changeRows(client, 'delete from console_sessions where member_id = $1', [id])
        return 'done'
      }),
    removeOperator: (id, { mayBeLast = false } = {}) =>
      inTransaction(pool, async (client) => {
        await lockMembers(client)
        if (!mayBeLast && !(await hasOtherOperator(client, id))) return 'last'
        const removed = await changeRows(client, 'delete from members where id = $1 and is_operator', [id])
        return removed === 1 ? 'done' : 'not-found'
      }),
    setPassword: (id, change) => inTransaction(pool, (client) => setPassword(client, id, change)),
    async startTotp(id, secret) {
      const text = 'update members set totp_secret = $2, totp_step = 0 where id = $1 and totp_confirmed_at is null'
      return (await changeRows(pool, text, [id, await sealer.seal(secret, totpSecretOf(id))])) === 1
    },
    async confirmTotp(id, { secret, step, recoveryDigests }) {
      // The secret is written again: another start may have replaced the one that the code belongs to.
      const text = `update members set totp_secret = $2, totp_step = $3, recovery_codes = $4, totp_confirmed_at = now()
        where id = $1 and totp_confirmed_at is null`
      const sealed = await sealer.seal(secret, totpSecretOf(id))
      return (await changeRows(pool, text, [id, sealed, step, recoveryDigests.map(fromHex)])) === 1
    },
    async removeTotp(id) {
      const text = `update members set totp_secret = null, totp_confirmed_at = null, totp_step = 0,
        recovery_codes = '{}' where id = $1`
      await changeRows(pool, text, [id])
    },
    async findTotpSecret(id) {
      const text = 'select totp_secret as sealed from members where id = $1'
      const sealed = (await findRow<{ sealed: Buffer | null }>(pool, text, [id]))?.sealed ?? null
      return sealed && sealer.open(sealed, totpSecretOf(id))
    },
    async takeTotpStep(id, step) {
      const text = 'update members set totp_step = $2 where id = $1 and totp_step < $2'
      return (await changeRows(pool, text, [id, step])) === 1
    },
    async setRecoveryCodes(id, digests) {
      await changeRows(pool, 'update members set recovery_codes = $2 where id = $1', [id, digests.map(fromHex)])
    },
    async takeRecoveryCode(id, digest) {
      const text = `update members set recovery_codes = array_remove(recovery_codes, $2)
        where id = $1 and $2 = any (recovery_codes)`
      return (await changeRows(pool, text, [id, fromHex(digest)])) === 1
    },
    removeMember: (accountId, id) => inTransaction(pool, (client) => removeMember(client, accountId, id)),
    async setNoticesSeen(accountId, memberId, at) {
      const text = 'update memberships set notices_seen_at = $3 where account_id = $1 and member_id = $2'
      await changeRows(pool, text, [accountId, memberId, at])
    },
    async findNoticesSeen(accountId, memberId) {
      const text = 'select notices_seen_at as "seenAt" from memberships where account_id = $1 and member_id = $2'
      return (await findRow<{ seenAt: Date | null }>(pool, text, [accountId, memberId]))?.seenAt ?? null
    },
  }
}

async function removeMember(client: PoolClient, accountId: string, id: string): Promise<Removal> {
  const values = [accountId, id]
  await lockMembers(client)
  const role = await findRow<{ role: string }>(
    client,
    'select role from memberships where account_id = $1 and member_id = $2',
    values,
  )
  if (role === undefined) return 'not-found'
  if (role.role === 'owner' && !(await hasOtherOwner(client, accountId, id))) return 'last'
  await changeRows(client, 'delete from memberships where account_id = $1 and member_id = $2', values)
  await changeRows(client, 'delete from console_sessions where account_id = $1 and member_id = $2', values)
  await changeRows(
    client,
    `delete from members where id = $1 and not is_operator
       and not exists (select from memberships where member_id = $1)`,
    [id],
  )
  return 'done'
}

const fromHex = (digest: string) => Buffer.from(digest, 'hex')

export const totpSecretOf = (memberId: string): Binding => ['members.totp_secret', memberId]

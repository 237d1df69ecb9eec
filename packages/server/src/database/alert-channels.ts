import type { AlertTopic } from '@assay/contract/admin'
import type { Pool } from 'pg'
import type { AlertChannel, AlertStore } from '../domain/ports/alert-store.ts'
import type { Binding, Sealer } from '../domain/ports/secret-store.ts'
import { changeRows, findRow, listRows } from './query.ts'

type Channels = Pick<
  AlertStore,
  'listChannels' | 'addChannel' | 'updateChannel' | 'removeChannel' | 'listOpen' | 'isMemberEmail'
>

/** The channels that people choose, and the alerts that they see. */
export function makeAlertChannels({ pool, sealer }: { pool: Pool; sealer: Sealer }): Channels {
  return {
    async listChannels(accountId) {
      const rows = await listRows<ChannelRow & { createdAt: Date; sentAt: Date | null; failure: string | null }>(
        pool,
        `select ${channelFields}, created_at as "createdAt", sent_at as "sentAt", failure from alert_channels
         where account_id is not distinct from $1 order by created_at, id`,
        [accountId],
      )
      return Promise.all(
        rows.map(async ({ createdAt, sentAt, failure, ...row }) => {
          const { email: _email, sealed: _sealed, ...fields } = row
          const channel = await openChannel(sealer, row).catch(() => ({ ...fields, target: null, secret: null }))
          return { ...channel, createdAt, sentAt, failure }
        }),
      )
    },

    async addChannel(channel, createdBy) {
      const { id, accountId, kind, target, secret, topics, threatsPerHour } = channel
      const isEmail = kind === 'email'
      const sealed = isEmail
        ? null
        : await sealer.seal(Buffer.from(JSON.stringify({ target, secret })), alertChannelOf(id))
      await changeRows(
        pool,
        `insert into alert_channels (id, account_id, kind, email, sealed, topics, threats_per_hour, created_by)
         values ($1, $2, $3, $4, $5, $6, $7, $8)`,
        [id, accountId, kind, isEmail ? target : null, sealed, topics, threatsPerHour, createdBy],
      )
    },

    async updateChannel(accountId, id, { topics, threatsPerHour }) {
      const changed = await changeRows(
        pool,
        `update alert_channels set topics = $3, threats_per_hour = coalesce($4, threats_per_hour)
         where id = $2 and account_id is not distinct from $1`,
        [accountId, id, topics, threatsPerHour],
      )
      if (changed === 0) return false
      await changeRows(pool, 'delete from alerts where channel_id = $1 and topic <> all($2)', [id, topics])
      return true
    },

    async removeChannel(accountId, id) {
      const statement = 'delete from alert_channels where id = $2 and account_id is not distinct from $1'
      return (await changeRows(pool, statement, [accountId, id])) > 0
    },

    listOpen: (accountId) =>
      listRows<{ topic: AlertTopic; text: string; since: Date }>(
        pool,
        `select alerts.topic, alerts.text, min(since) as since
         from alerts join alert_channels on alert_channels.id = channel_id
         where account_id is not distinct from $1 and told_at is not null group by 1, 2 order by 3, 2 limit 100`,
        [accountId],
      ),

    async isMemberEmail(accountId, email) {
      const found = await findRow(
        pool,
        `select from memberships join members on members.id = member_id
         where account_id = $1 and lower(email) = lower($2)`,
        [accountId, email],
      )
      return found !== undefined
    },
  }
}

/** Opens the address of a channel. Throws when it was sealed with another master key. */
export async function openChannel(sealer: Sealer, { id, email, sealed, ...row }: ChannelRow): Promise<AlertChannel> {
  if (sealed === null) return { id, ...row, target: email ?? '', secret: null }
  const opened = JSON.parse(String(await sealer.open(sealed, alertChannelOf(id)))) as {
    target: string
    secret: string | null
  }
  return { id, ...row, ...opened }
}

export const alertChannelOf = (id: string): Binding => ['alert_channels.sealed', id]

export type ChannelRow = Omit<AlertChannel, 'target' | 'secret'> & { email: string | null; sealed: Buffer | null }

export const channelFields = `alert_channels.id, account_id as "accountId", kind, email, sealed, topics,
  threats_per_hour as "threatsPerHour"`

/** Mail goes to people who belong to the account, and only for as long as they do. */
export const isHeard = `(email is null or account_id is null or exists (
  select from memberships join members on members.id = member_id
  where memberships.account_id = alert_channels.account_id and lower(members.email) = lower(alert_channels.email)
))`

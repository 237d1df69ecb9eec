import type { AlertTopic } from '@assay/contract/admin'
import type { Pool, PoolClient } from 'pg'
import type { AlertChannel, AlertCondition, AlertFacts, AlertStore } from '../domain/ports/alert-store.ts'
import type { Sealer } from '../domain/ports/secret-store.ts'
import { type ChannelRow, channelFields, isHeard, makeAlertChannels, openChannel } from './alert-channels.ts'
import { nodeIsAlive } from './operations.ts'
import { changeRows, findRow, inTransaction, listRows } from './query.ts'

/** Longest time for a statement of a look, so that a slow one does not hold the lock for long. */
const statementMs = 5000

/** Held by the process that looks for conditions, so that each begins and ends once. */
const alertLock = 52_115_042

export function makeAlertStore({ pool, sealer }: { pool: Pool; sealer: Sealer }): AlertStore {
  return {
    ...makeAlertChannels({ pool, sealer }),

    async update(find, minAgeMs) {
      if ((await findRow(pool, 'select from alert_channels limit 1')) === undefined) return
      const settings = [`statement_timeout = ${statementMs}`]
      await inTransaction(pool, (client) => look(client, find, minAgeMs), { settings })
    },

    async claim(limit, leaseMs) {
      const rows = await listRows<ClaimedRow>(pool, claimMessages, [limit, leaseMs])
      const claimed = await Promise.all(
        rows.map(async ({ messageId, token, attempts, state, topic, text, since, ...row }) => {
          const channel = await openChannel(sealer, row).catch(() => undefined)
          return channel && { token, attempts, channel, message: { id: messageId, state, topic, text, since } }
        }),
      )
      return claimed.filter((one) => one !== undefined)
    },

    deleteOldMessages: () => changeRows(pool, `delete from alert_messages where created_at < now() - interval '1 day'`),

    async recordAttempt({ token, channel, message }, { failure, pauseMs }) {
      await inTransaction(pool, async (client) => {
        const held = await changeRows(
          client,
          pauseMs === undefined
            ? 'delete from alert_messages where id = $1 and lease_token = $2 and $3::float8 is null'
            : `update alert_messages set attempts = attempts + 1, lease_token = null,
                 next_at = now() + $3::float8 * interval '1 millisecond' where id = $1 and lease_token = $2`,
          [message.id, token, pauseMs ?? null],
        )
        if (held === 0) return
        await changeRows(
          client,
          `update alert_channels set failure = $2, sent_at = case when $2::text is null then now() else sent_at end
           where id = $1`,
          [channel.id, failure],
        )
      })
    },
  }
}

async function look(client: PoolClient, find: Parameters<AlertStore['update']>[0], minAgeMs: number) {
  const lock = await findRow<{ taken: boolean }>(client, 'select pg_try_advisory_xact_lock($1) as taken', [alertLock])
  if (lock?.taken !== true || (await changeRows(client, recordLook, [minAgeMs])) === 0) return
  const channels = await listRows<AlertChannel>(client, listHeardChannels)
  const conditions = find(channels, await readAlertFacts(client, channels))
  await exchange(client, conditions)
}

/** Changes no row if the last look is younger. A look in the future is from before the clock was set back. */
const recordLook = `
insert into alert_look default values
on conflict (single) do update set looked_at = now()
where abs(extract(epoch from now() - alert_look.looked_at)) >= $1::float8 / 1000
`

/** Conditions do not depend on the address of a channel, so it stays sealed. */
const listHeardChannels = `
select id, account_id as "accountId", kind, '' as target, null as secret, topics, threats_per_hour as "threatsPerHour"
from alert_channels where ${isHeard}
`

const wanted = `json_to_recordset($1::json) as wanted
  ("channelId" uuid, subject text, topic text, text text, "nodeName" text, "holdMs" float8)`
const isWanted = 'alerts.channel_id = wanted."channelId" and alerts.subject = wanted.subject'

/** Moves the alerts from the conditions of the last look to those of this one, with a message for each change. */
async function exchange(client: PoolClient, conditions: AlertCondition[]) {
  const values = [JSON.stringify(conditions)]
  for (const statement of [beginAlerts, tellAlerts, missAlerts, endAlerts]) await changeRows(client, statement, values)
}

const beginAlerts = `
insert into alerts (channel_id, subject, topic, text, node_name, hold_ms)
select distinct on ("channelId", subject) "channelId", subject, topic, text, "nodeName", "holdMs" from ${wanted}
on conflict (channel_id, subject) do update set absent_since = null where alerts.absent_since is not null
`

const hasHeld = (since: string) => `${since} <= now() - hold_ms * interval '1 millisecond'`

const tellAlerts = `
with told as (
  update alerts set told_at = now() from ${wanted}
  where ${isWanted} and told_at is null and ${hasHeld('since')}
  returning alerts.channel_id, alerts.topic, alerts.text, since
)
insert into alert_messages (channel_id, state, topic, text, since)
select channel_id, 'firing', topic, text, since from told
`

const missAlerts = `
update alerts set absent_since = now()
where absent_since is null and not exists (select from ${wanted} where ${isWanted})
`

/** An alert of a node waits while the node is silent. If the node is gone, nothing tells that the problem is over. */
const endAlerts = `
with ended as (
  delete from alerts
  where not exists (select from ${wanted} where ${isWanted}) and (told_at is null or ${hasHeld('absent_since')})
    and coalesce((select bool_or(${nodeIsAlive}) from nodes where name = node_name), true)
  returning channel_id, topic, text, since, told_at, node_name
)
insert into alert_messages (channel_id, state, topic, text, since)
select channel_id, 'resolved', topic, text, since from ended
where told_at is not null and (node_name is null or exists (select from nodes where name = node_name))
`

type ClaimedRow = ChannelRow & {
  messageId: string
  token: string
  attempts: number
  state: 'firing' | 'resolved'
  topic: AlertTopic
  text: string
  since: Date
}

/** The messages of a channel are sent in their order: the end of an alert after its beginning. */
const claimMessages = `
with due as materialized (
  select alert_messages.id from alert_messages join alert_channels on alert_channels.id = channel_id
  where next_at <= now() and ${isHeard} and not exists (
    select from alert_messages as earlier
    where earlier.channel_id = alert_messages.channel_id
      and (earlier.created_at, earlier.id) < (alert_messages.created_at, alert_messages.id)
  )
  order by next_at limit $1 for update of alert_messages skip locked
), claimed as (
  update alert_messages set lease_token = gen_random_uuid(), next_at = now() + $2::float8 * interval '1 millisecond'
  where id in (select id from due)
  returning *
)
select claimed.id as "messageId", lease_token as token, attempts, claimed.state, claimed.topic, claimed.text,
  claimed.since, ${channelFields}
from claimed join alert_channels on alert_channels.id = channel_id
`

/** Reads what the chosen topics need, and nothing else. */
async function readAlertFacts(
  client: PoolClient,
  channels: Pick<AlertChannel, 'accountId' | 'topics'>[],
): Promise<AlertFacts> {
  const listAccounts = (topic: AlertTopic) => [
    ...new Set(channels.filter(({ topics }) => topics.includes(topic)).flatMap(({ accountId }) => accountId ?? [])),
  ]
  const isChosen = (...topics: AlertTopic[]) =>
    channels.some((channel) => topics.some((topic) => channel.topics.includes(topic)))
  const open = await listRows<{ channelId: string; subject: string }>(
    client,
    'select channel_id as "channelId", subject from alerts',
  )
  const keys = new Set(open.map(({ channelId, subject }) => `${channelId} ${subject}`))
  return {
    nodes: isChosen('signatures', 'engine', 'disk') ? await listRows(client, listNodes) : [],
    credits: isChosen('credits') ? await listRows(client, listCredits, [listAccounts('credits')]) : [],
    deadReceivers: isChosen('webhooks') ? await listRows(client, listDeadReceivers) : [],
    threats: isChosen('threats')
      ? [
          { accountId: null, count: (await findRow<{ count: number }>(client, countAllThreats))?.count ?? 0 },
          ...(await countThreatsOf(client, listAccounts('threats'))),
        ]
      : [],
    isOpen: (channelId, subject) => keys.has(`${channelId} ${subject}`),
  }
}

/** Counting reads all scans of an hour. If that takes too long, the other facts are still used. */
async function countThreatsOf(client: PoolClient, accountIds: string[]): Promise<AlertFacts['threats']> {
  await changeRows(client, 'savepoint before_count')
  try {
    return await listRows(client, countThreats, [accountIds])
  } catch (error) {
    if ((error as { code?: unknown }).code !== queryCanceled) throw error
    await changeRows(client, 'rollback to before_count')
    return accountIds.map((accountId) => ({ accountId, count: null }))
  }
}

const queryCanceled = '57014'

const listNodes = `select name, ${nodeIsAlive} as "isAlive", faults from nodes order by name, started_at`

/** A period that is over, or begins in the future, is replaced with the next request. */
const listCredits = `
select accounts.id as "accountId", name as "accountName", credit_limit as "limit", credit_remaining as remaining,
  period_end as "periodEnd"
from balances join accounts on accounts.id = balances.account_id
where account_id = any($1) and period_end > now() and period_start <= clock_timestamp()
`

const listDeadReceivers = `
select account_id as "accountId", name as "accountName", host, min(dead_since) as since
from webhook_endpoints join accounts on accounts.id = account_id
where dead_since is not null group by 1, 2, 3 order by 3, 2
`

const countAllThreats = `
select coalesce(sum(malware_threat + image_threat), 0)::integer as count from node_minutes
where minute > now() - interval '1 hour' and minute <= now()
`

/** Scans of test keys found nothing. */
const countThreats = `
select account_id as "accountId", count(*)::integer as count from scans
where account_id = any($1) and created_at > now() - interval '1 hour' and status = 'threat'
  and (metadata -> 'test') is null
group by 1
`

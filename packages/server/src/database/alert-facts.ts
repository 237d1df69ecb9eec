import type { AlertTopic } from '@assay/contract/admin'
import type { PoolClient } from 'pg'
import type { AlertChannel, AlertFacts } from '../domain/ports/alert-store.ts'
import { nodeIsAlive } from './node-store.ts'
import { changeRows, findRow, listRows } from './query.ts'

/** Reads what the chosen topics need, and nothing else. */
export async function readAlertFacts(
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

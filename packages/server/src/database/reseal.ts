import type { Pool, PoolClient } from 'pg'
import type { Binding } from '../domain/ports/secret-store.ts'
import { OperatorMistake } from '../domain/problem.ts'
import { alertChannelOf } from './alert-channels.ts'
import { totpSecretOf } from './console/member-store.ts'
import { changeRows, inTransaction, listRows } from './query.ts'
import { downloadCredentialOf, previousWebhookSecretOf, receiptKeyOf, webhookSecretOf } from './secret-stores.ts'

type SealedJob = {
  scanId: string
  accountId: string
  sealed: Buffer
  storageKey: string | null
  bytes: number
  sha256: string
}

/** How values get from one master key to the next; undefined for a value that the old key does not open. */
export type Resealing = {
  oldId: string
  newId: string
  reseal(sealed: Buffer, binding: Binding): Buffer | undefined
  resealJob(job: SealedJob): Buffer | undefined
  /** Replaces the webhook secret of an account, when the old key is lost. */
  newWebhookSecret?(accountId: string): Buffer
}

export type Resealed = { accounts: number; members: number; jobs: number }

type Options = {
  isSatellite: boolean
  /** Called when no other rotation of this database can commit before this one, and before anything is sealed. */
  onLocked(): void
}

/** Sealing many jobs takes longer than a statement of the service may take. */
const settings = ['statement_timeout = 0', 'idle_in_transaction_session_timeout = 0']
const jobsAtOnce = 500

/**
 * Seals everything in the database again, and records the new key, in one transaction: a crash leaves either key valid
 * for everything. Refuses while a node runs, because it would go on sealing with the old key.
 */
export async function resealAll(pool: Pool, resealing: Resealing, options: Options) {
  return inTransaction(
    pool,
    async (client): Promise<Resealed> => {
      await client.query(
        `lock table master_key, accounts, download_credentials, members, alert_channels, receipt_keys, jobs
         in share row exclusive mode`,
      )
      await requireNoNodes(client)
      const moved = await changeRows(client, 'update master_key set id = $2 where id = $1', [
        resealing.oldId,
        resealing.newId,
      ])
      if (moved !== 1) throw new OperatorMistake('The master key was rotated by another command. Nothing was changed.')
      options.onLocked()
      // The home region seals the secrets of accounts, and replicates them.
      const accounts = options.isSatellite ? 0 : await resealAccounts(client, resealing)
      if (!options.isSatellite) await resealDownloadCredentials(client, resealing)
      const members = await resealMembers(client, resealing)
      await resealAlertChannels(client, resealing)
      await resealReceiptKey(client, resealing)
      const jobs = await resealJobs(client, resealing)
      // No node runs, so no caller waits for a remote scan any more; the sweeper removes the content of remote scans.
      await client.query('delete from remote_scans')
      return { accounts, members, jobs }
    },
    { settings },
  )
}

async function requireNoNodes(client: PoolClient) {
  const alive = await listRows<{ name: string }>(
    client,
    `select distinct name from nodes where seen_at > now() - interval '15 seconds' order by name`,
  )
  if (alive.length === 0) return
  const names = alive.map(({ name }) => name).join(', ')
  throw new OperatorMistake(
    `These nodes run: ${names}. Stop them first; a node that was killed counts as running for 15 seconds. Nothing was changed.`,
  )
}

async function resealAccounts(client: PoolClient, { reseal, newWebhookSecret }: Resealing): Promise<number> {
  const rows = await listRows<{ id: string; secret: Buffer; previous: Buffer | null }>(
    client,
    'select id, webhook_secret as secret, previous_webhook_secret as previous from accounts order by id',
  )
  for (const { id, secret, previous } of rows) {
    const sealed = newWebhookSecret?.(id) ?? reseal(secret, webhookSecretOf(id))
    if (sealed === undefined) {
      throw new OperatorMistake(
        `The webhook secret of account ${id} cannot be opened. Create a new one: npm run assay -- webhooks rotate-secret --account ${id}. Nothing was changed.`,
      )
    }
    const sealedPrevious = previous === null ? undefined : reseal(previous, previousWebhookSecretOf(id))
    const text = 'update accounts set webhook_secret = $2, previous_webhook_secret = $3 where id = $1'
    await changeRows(client, text, [id, sealed, sealedPrevious ?? null])
  }
  return rows.length
}

/** With a lost key, a credential that does not open is removed; the owner adds it again. */
async function resealDownloadCredentials(client: PoolClient, { reseal, newWebhookSecret }: Resealing) {
  const rows = await listRows<{ id: string; accountId: string; target: string; region: string | null; sealed: Buffer }>(
    client,
    'select id, account_id as "accountId", target, region, sealed from download_credentials order by id',
  )
  for (const { id, sealed, ...row } of rows) {
    const resealed = reseal(sealed, downloadCredentialOf(row))
    if (resealed !== undefined) {
      await changeRows(client, 'update download_credentials set sealed = $2 where id = $1', [id, resealed])
    } else if (newWebhookSecret !== undefined) {
      await changeRows(client, 'delete from download_credentials where id = $1', [id])
    } else {
      throw new OperatorMistake(
        `The download credential for ${row.target} cannot be opened. Remove it: npm run assay -- downloads remove ${id} --account ${row.accountId}. Nothing was changed.`,
      )
    }
  }
}

async function resealMembers(client: PoolClient, { reseal, newWebhookSecret }: Resealing): Promise<number> {
  const rows = await listRows<{ id: string; email: string; secret: Buffer }>(
    client,
    'select id, email, totp_secret as secret from members where totp_secret is not null order by id',
  )
  for (const { id, email, secret } of rows) {
    const sealed = reseal(secret, totpSecretOf(id))
    if (sealed !== undefined) {
      await changeRows(client, 'update members set totp_secret = $2 where id = $1', [id, sealed])
    } else if (newWebhookSecret !== undefined) {
      // The key is lost: the member sets up the authenticator app again.
      const text = 'update members set totp_secret = null, totp_confirmed_at = null where id = $1'
      await changeRows(client, text, [id])
    } else {
      throw new OperatorMistake(
        `The secret of the authenticator app of ${email} cannot be opened. Remove it: npm run assay -- operators reset ${email} --forget-app. Nothing was changed.`,
      )
    }
  }
  return rows.length
}

/** An address that does not open stays, and the console tells its owner. With a lost key, its channel is removed. */
async function resealAlertChannels(client: PoolClient, { reseal, newWebhookSecret }: Resealing) {
  const rows = await listRows<{ id: string; sealed: Buffer }>(
    client,
    'select id, sealed from alert_channels where sealed is not null order by id',
  )
  for (const { id, sealed } of rows) {
    const resealed = reseal(sealed, alertChannelOf(id))
    if (resealed !== undefined) {
      await changeRows(client, 'update alert_channels set sealed = $2 where id = $1', [id, resealed])
    } else if (newWebhookSecret !== undefined) {
      await changeRows(client, 'delete from alert_channels where id = $1', [id])
    }
  }
}

/** A lost private key is erased: the next receipt creates another, and the public key stays for earlier receipts. */
async function resealReceiptKey(client: PoolClient, { reseal }: Resealing) {
  const rows = await listRows<{ id: string; sealed: Buffer }>(
    client,
    'select id, sealed from receipt_keys where sealed is not null',
  )
  for (const { id, sealed } of rows) {
    const resealed = reseal(sealed, receiptKeyOf(id))
    await changeRows(client, 'update receipt_keys set sealed = $2 where id = $1', [id, resealed ?? null])
  }
}

/** Content that does not open stays as it is: its job fails as it would have failed before. */
async function resealJobs(client: PoolClient, { oldId, newId, resealJob }: Resealing): Promise<number> {
  let last = '00000000-0000-0000-0000-000000000000'
  let count = 0
  for (;;) {
    const jobs = await listRows<SealedJob>(client, listSealedJobs, [last, jobsAtOnce])
    for (const job of jobs) {
      const text = 'update jobs set sealed = $2, queue = replace(queue, $3, $4) where scan_id = $1'
      await changeRows(client, text, [job.scanId, resealJob(job) ?? job.sealed, oldId, newId])
    }
    count += jobs.length
    last = jobs.at(-1)?.scanId ?? last
    if (jobs.length < jobsAtOnce) return count
  }
}

const listSealedJobs = `
select scan_id as "scanId", jobs.account_id as "accountId", sealed, storage_key as "storageKey",
  coalesce(content_length, 0)::float8 as bytes, coalesce(metadata->>'hash_sha256', '') as sha256
from jobs left join scans on scans.id = scan_id
where sealed is not null and scan_id > $1 order by scan_id limit $2
`

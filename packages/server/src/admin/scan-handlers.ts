import type { ScanFilter, ScanRow } from '@assay/contract/admin'
import type { Account } from '../domain/accounts/account.ts'
import { consoleKeyPrefix } from '../domain/console/console-keys.ts'
import type { AccountStore } from '../domain/ports/account-store.ts'
import type { Clock } from '../domain/ports/clock.ts'
import type { DeliveryStore } from '../domain/ports/delivery-store.ts'
import type { KeyStore } from '../domain/ports/key-store.ts'
import type { Counts, HistoryFilter, RecordedScan, ScanHistory } from '../domain/ports/scan-history.ts'
import type { Receipts } from '../domain/receipts/receipts.ts'
import { toScanResult } from '../domain/scans/scan.ts'
import { getAccountId, getId, type Handlers, listPage, requireFound, toTimes } from './call.ts'

export type ScanHandlerDeps = {
  history: ScanHistory
  accounts: AccountStore
  keys: KeyStore
  deliveries: DeliveryStore
  clock: Clock
  receipts: Pick<Receipts, 'addReceipt'>
}

const dayMs = 86_400_000
const shownDays = 30
const paceDays = 7
const noScans: Counts = { clean: 0, threat: 0, error: 0, pending: 0 }

/** Handlers for the scans of an account: overview, list, detail and usage. */
export function makeScanHandlers(deps: ScanHandlerDeps) {
  const { history } = deps

  return {
    getOverview: (call) => getOverview(deps, getAccountId(call)),
    getUsage: (call) => getUsage(deps, getAccountId(call)),

    async listScans(call) {
      const accountId = getAccountId(call)
      const filter = toFilter(call.query)
      return listPage(
        call.query,
        ({ cursor, limit }) => history.list(accountId, filter, { before: cursor, limit }),
        toRow,
      )
    },

    async getScan(call) {
      const accountId = getAccountId(call)
      const id = getId(call, 'scan')
      const scan = requireFound(await history.find(accountId, id), 'scan')
      const deliveriesOfScan = await history.listDeliveriesOf(accountId, id)
      const revisions = await history.listRevisionsOf(id)
      const completedAt = scan.completedAt
      const later = [
        ...revisions.map(({ at, status, reason }) => ({
          at: at.toISOString(),
          event: `revised to ${status}`,
          detail: reason,
        })),
        ...deliveriesOfScan.map(({ createdAt, state, url }) => ({
          at: createdAt.toISOString(),
          event: `webhook ${state}`,
          detail: url,
        })),
      ].sort((a, b) => a.at.localeCompare(b.at))
      return {
        scan: toScanResult(scan),
        key_name: scan.keyName,
        timeline: [
          { at: scan.createdAt.toISOString(), event: 'accepted', detail: scan.contentName },
          ...(completedAt === null
            ? []
            : [{ at: completedAt.toISOString(), event: scan.status, detail: scan.signals?.join(', ') ?? null }]),
          ...later,
        ],
        deliveries: deliveriesOfScan.map((delivery) => delivery.id),
      }
    },

    async getReceipt(call) {
      const scan = requireFound(await history.find(getAccountId(call), getId(call, 'scan')), 'scan')
      return toScanResult(await deps.receipts.addReceipt(scan))
    },
  } satisfies Partial<Handlers>
}

async function getOverview({ history, accounts, keys, deliveries, clock }: ScanHandlerDeps, accountId: string) {
  const since = toDayStart(clock.now(), shownDays - 1)
  const [account, usage, webhooks, latest, endpoints, allKeys] = await Promise.all([
    accounts.findAccount(accountId),
    history.countByDay(accountId, since),
    history.countWebhooks(accountId, since),
    history.list(accountId, {}, { before: undefined, limit: 8 }),
    deliveries.listEndpoints({ accountId }),
    keys.listKeys(accountId),
  ])
  const { plan, balance } = requireFound(account, 'account')
  const days = toDays(usage, since)
  const { day: _day, ...today } = days.at(-1) ?? { day: '', ...noScans }
  return {
    plan,
    ...toCredits(balance),
    period_start: balance.period.start.toISOString(),
    today: { scans: total(today), ...today },
    webhooks: { ...webhooks, paused: endpoints.filter(({ pausedAt }) => pausedAt !== null).length },
    days,
    latest: latest.map(toRow),
    checklist: {
      // Scans in the console use a hidden key, which does not count here.
      has_key: allKeys.some(({ prefix, lastUsedAt }) => prefix !== consoleKeyPrefix && lastUsedAt !== null),
      has_scanned: latest.length > 0,
      has_webhook: endpoints.some(({ lastSuccessAt }) => lastSuccessAt !== null),
    },
  }
}

async function getUsage({ history, accounts, clock }: ScanHandlerDeps, accountId: string) {
  const now = clock.now()
  const since = toDayStart(now, shownDays - 1)
  const { balance } = requireFound(await accounts.findAccount(accountId), 'account')
  const usage = await history.countByDay(accountId, since)
  const recent = usage
    .filter(({ day }) => day > toDay(toDayStart(now, paceDays)))
    .reduce((sum, row) => sum + total(row), 0)
  return {
    days: usage.map(({ keyName, ...row }) => ({ ...row, key_name: keyName })),
    refusals: await history.listRejectedRequests(accountId, since),
    ...toCredits(balance),
    runs_out_at: toRunOut(balance.creditRemaining, recent / paceDays, now, balance.period.end),
  }
}

const toRow = (scan: RecordedScan): ScanRow => ({
  id: scan.id,
  scan_type: scan.kind,
  status: scan.status,
  content_name: scan.contentName,
  content_length: scan.contentLength,
  content_type: scan.contentType,
  signals: scan.signals ?? [],
  sha256: scan.metadata?.hash_sha256 ?? null,
  key_name: scan.keyName,
  created_at: scan.createdAt.toISOString(),
  completed_at: scan.completedAt?.toISOString() ?? null,
  revised_status: (scan.metadata?.revised_status as ScanRow['revised_status']) ?? null,
  revised_at: scan.metadata?.revised_at ?? null,
})

const toFilter = ({ status, kind, key, name, from, to, hash }: ScanFilter): HistoryFilter => ({
  status,
  name,
  kind,
  keyId: key,
  sha256: hash,
  ...toTimes({ from, to }),
})

/** Sums the counts of each day, with zeros for days without a scan. */
function toDays(usage: (Counts & { day: string })[], since: Date) {
  return Array.from({ length: shownDays }, (_, n) => {
    const day = toDay(new Date(since.getTime() + n * dayMs))
    const sum = { ...noScans }
    for (const row of usage.filter((one) => one.day === day)) {
      for (const status of Object.keys(noScans) as (keyof Counts)[]) sum[status] += row[status]
    }
    return { day, ...sum }
  })
}

const total = ({ clean, threat, error, pending }: Counts) => clean + threat + error + pending

const toCredits = ({ creditLimit, creditRemaining, period }: Account['balance']) => ({
  credit_limit: creditLimit,
  credit_remaining: creditRemaining,
  period_end: period.end.toISOString(),
})

function toRunOut(remaining: number, perDay: number, now: Date, periodEnd: Date): string | null {
  if (perDay === 0) return null
  const at = new Date(now.getTime() + (remaining / perDay) * dayMs)
  return at < periodEnd ? at.toISOString() : null
}

const toDay = (date: Date) => date.toISOString().slice(0, 10)
const toDayStart = (now: Date, daysAgo: number) => new Date(Date.parse(`${toDay(now)}T00:00:00Z`) - daysAgo * dayMs)

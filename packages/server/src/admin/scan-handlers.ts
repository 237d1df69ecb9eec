import type { ActivitySpanName, ScanFilter, ScanRow, VerdictPoint } from '@assay/contract/admin'
import type { Account } from '../domain/accounts/account.ts'
import type { Clock } from '../domain/clock.ts'
import { consoleKeyPrefix } from '../domain/console/authentication.ts'
import type { AccountStore, KeyStore } from '../domain/ports/account-store.ts'
import type { DeliveryStore } from '../domain/ports/delivery-store.ts'
import type {
  AccountStep,
  ActivitySpan,
  ActivityStore,
  Counts,
  HistoryFilter,
  RecordedScan,
  ScanHistory,
  ServiceStep,
} from '../domain/ports/scan-store.ts'
import type { Receipts } from '../domain/receipts.ts'
import { toScanResult } from '../domain/scans/scan.ts'
import { requestSeconds } from '../runtime/activity-totals.ts'
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
        toScanRow,
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
    today: { scans: countScans(today), ...today },
    webhooks: { ...webhooks, paused: endpoints.filter(({ pausedAt }) => pausedAt !== null).length },
    days,
    latest: latest.map(toScanRow),
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
    .reduce((sum, row) => sum + countScans(row), 0)
  return {
    days: usage.map(({ keyName, ...row }) => ({ ...row, key_name: keyName })),
    refusals: await history.listRejectedRequests(accountId, since),
    ...toCredits(balance),
    runs_out_at: toRunOut(balance.creditRemaining, recent / paceDays, now, balance.period.end),
  }
}

const toScanRow = (scan: RecordedScan): ScanRow => ({
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

const countScans = ({ clean, threat, error, pending }: Counts) => clean + threat + error + pending

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

const spans: Record<ActivitySpanName, ActivitySpan> = {
  hour: { steps: 60, stepSeconds: 60 },
  day: { steps: 96, stepSeconds: 900 },
}

/** Jobs of an account that are counted; the console shows more as "10,000 or more". */
const mostJobs = 10_000

/** Handlers for the charts of the last hour and day, of the service and of an account. */
export function makeActivityHandlers({ activity, record }: { activity: ActivityStore; record(): Promise<void> }) {
  return {
    async getActivity({ query }) {
      const span = spans[query.span ?? 'hour']
      // This node records its activity at once; other nodes do so at the end of the minute.
      await record()
      const steps = await activity.listServiceSteps(span)
      return {
        step_seconds: span.stepSeconds,
        points: steps.map((step) => ({
          ...toPoint(step),
          engine_seconds: {
            malware: step.engineMs.malware / 1000,
            nsfw_image: step.engineMs.nsfw_image / 1000,
          },
          memory_bytes: step.memoryBytes,
          queue: step.queue && toQueue(step.queue),
        })),
      }
    },

    async getAccountActivity(call) {
      const accountId = getAccountId(call)
      const span = spans[call.query.span ?? 'hour']
      const [steps, queue] = await Promise.all([
        activity.listAccountSteps(accountId, span),
        activity.countJobsOf(accountId, mostJobs),
      ])
      return {
        step_seconds: span.stepSeconds,
        queue: toQueue(queue),
        points: steps.map((step) => ({ ...toPoint(step), queue: toQueue(step.queue) })),
      }
    },
  } satisfies Partial<Handlers>
}

const toQueue = ({ waiting, oldestSeconds }: AccountStep['queue']) => ({ waiting, oldest_seconds: oldestSeconds })

const toPoint = ({ at, scans, latency, deliveries }: AccountStep | ServiceStep): VerdictPoint => ({
  at: at.toISOString(),
  malware: scans.malware,
  nsfw_image: scans.nsfw_image,
  p50_ms: findPercentileMs(latency, 0.5),
  p99_ms: findPercentileMs(latency, 0.99),
  deliveries,
})

/**
 * Estimates a percentile from a histogram, as `histogram_quantile` of Prometheus does: values are taken to be evenly
 * spread within their bucket, and those beyond the last bound to equal it. Null without values.
 */
export function findPercentileMs(histogram: number[], share: number): number | null {
  const rank = histogram.reduce((sum, count) => sum + count, 0) * share
  if (rank === 0) return null
  let below = 0
  for (const [n, count] of histogram.entries()) {
    if (count > 0 && below + count >= rank) {
      const from = requestSeconds[n - 1] ?? 0
      const to = requestSeconds[n] ?? from
      return Math.round((from + (to - from) * ((rank - below) / count)) * 10_000) / 10
    }
    below += count
  }
  return null
}

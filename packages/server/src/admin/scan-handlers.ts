import { Readable } from 'node:stream'
import type { accountRoutes, ScanFilter, ScanRow } from '@assay/contract/admin'
import { validate as isUuid } from 'uuid'
import { consoleKeyPrefix } from '../domain/console/console-keys.ts'
import type { AccountStore } from '../domain/ports/account-store.ts'
import type { Clock } from '../domain/ports/clock.ts'
import type { DeliveryStore } from '../domain/ports/delivery-store.ts'
import type { KeyStore } from '../domain/ports/key-store.ts'
import type { Counts, HistoryFilter, RecordedScan, ScanHistory } from '../domain/ports/scan-history.ts'
import { toScanResult } from '../domain/scans/scan.ts'
import { getAccountId, type Handlers, requireThere } from './call.ts'
import { toCsvLine } from './csv.ts'

export type ScanHandlerDeps = {
  history: ScanHistory
  accounts: AccountStore
  keys: KeyStore
  deliveries: DeliveryStore
  clock: Clock
}

type Names = 'getOverview' | 'listScans' | 'exportScans' | 'getScan' | 'getUsage'

const dayMs = 86_400_000
const shownDays = 30
const paceDays = 7
const exportPage = 1000
const none: Counts = { clean: 0, threat: 0, error: 0, pending: 0 }

/** What an account has scanned: at a glance, one by one, and in numbers. */
export function makeScanHandlers(deps: ScanHandlerDeps): Handlers<Names & keyof typeof accountRoutes> {
  const { history, accounts, keys, deliveries, clock } = deps

  return {
    async getOverview(call) {
      const accountId = getAccountId(call)
      const now = clock.now()
      const since = toDayStart(now, shownDays - 1)
      const [account, usage, webhooks, latest, endpoints, allKeys] = await Promise.all([
        accounts.findAccount(accountId),
        history.countByDay(accountId, since),
        history.countWebhooks(accountId, since),
        history.list(accountId, {}, { before: undefined, limit: 8 }),
        deliveries.listEndpoints({ accountId }),
        keys.listKeys(accountId),
      ])
      const { plan, balance } = requireThere(account, 'account')
      const days = toDays(usage, since)
      const today = days.at(-1) ?? { day: '', ...none }
      return {
        plan,
        ...toCredits(balance),
        period_start: balance.period.start.toISOString(),
        today: {
          scans: total(today),
          clean: today.clean,
          threat: today.threat,
          error: today.error,
          pending: today.pending,
        },
        webhooks: { ...webhooks, paused: endpoints.filter(({ pausedAt }) => pausedAt !== null).length },
        days,
        latest: latest.map(toRow),
        checklist: {
          // A scan of the console uses a key that nobody has.
          has_key: allKeys.some(({ prefix, lastUsedAt }) => prefix !== consoleKeyPrefix && lastUsedAt !== null),
          has_scanned: latest.length > 0,
          has_webhook: endpoints.some(({ lastSuccessAt }) => lastSuccessAt !== null),
        },
      }
    },

    async listScans(call) {
      const limit = Number(call.query.limit ?? 50)
      const page = { before: findCursor(call.query.cursor), limit: limit + 1 }
      const found = await history.list(getAccountId(call), toFilter(call.query), page)
      const items = found.slice(0, limit).map(toRow)
      return { items, next: found.length > limit ? (items.at(-1)?.id ?? null) : null }
    },

    async exportScans(call) {
      const accountId = getAccountId(call)
      const filter = toFilter(call.query)
      call.reply.type('text/csv; charset=utf-8').header('Content-Disposition', 'attachment; filename="scans.csv"')
      return Readable.from(toCsv(accountId, filter))
    },

    async getScan(call) {
      const accountId = getAccountId(call)
      const id = call.params.id ?? ''
      const scan = requireThere(isUuid(id) ? await history.find(accountId, id) : undefined, 'scan')
      const sent = await history.listDeliveriesOf(accountId, id)
      const ended = scan.completedAt
      return {
        scan: toScanResult(scan),
        key_name: scan.keyName,
        timeline: [
          { at: scan.createdAt.toISOString(), event: 'accepted', detail: scan.contentName },
          ...(ended === null
            ? []
            : [{ at: ended.toISOString(), event: scan.status, detail: scan.signals?.join(', ') ?? null }]),
          ...sent.map(({ createdAt, state, url }) => ({
            at: createdAt.toISOString(),
            event: `webhook ${state}`,
            detail: url,
          })),
        ],
        deliveries: sent.map((delivery) => delivery.id),
      }
    },

    async getUsage(call) {
      const accountId = getAccountId(call)
      const now = clock.now()
      const since = toDayStart(now, shownDays - 1)
      const account = requireThere(await accounts.findAccount(accountId), 'account')
      const usage = await history.countByDay(accountId, since)
      const recent = usage
        .filter(({ day }) => day > toDay(toDayStart(now, paceDays)))
        .reduce((sum, row) => sum + total(row), 0)
      return {
        days: usage.map(({ keyName, ...row }) => ({ ...row, key_name: keyName })),
        refusals: await history.listRefusals(accountId, since),
        ...toCredits(account.balance),
        runs_out_at: toRunOut(account.balance.creditRemaining, recent / paceDays, now, account.balance.period.end),
      }
    },
  }

  async function* toCsv(accountId: string, filter: HistoryFilter) {
    yield toCsvLine([
      'id',
      'kind',
      'status',
      'name',
      'bytes',
      'type',
      'signals',
      'sha256',
      'key',
      'created',
      'completed',
    ])
    for (let before: string | undefined; ; ) {
      const page = await history.list(accountId, filter, { before, limit: exportPage })
      for (const scan of page) {
        const row = toRow(scan)
        yield toCsvLine([
          ...[row.id, row.scan_type, row.status, row.content_name, row.content_length, row.content_type],
          ...[row.signals.join(' '), row.sha256, row.key_name, row.created_at, row.completed_at],
        ])
      }
      if (page.length < exportPage) return
      before = page.at(-1)?.id
    }
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
})

const toFilter = ({ status, kind, key, from, to, hash }: ScanFilter): HistoryFilter => ({
  ...{ status, kind, keyId: key, sha256: hash },
  from: from === undefined ? undefined : new Date(`${from}T00:00:00Z`),
  // The day itself is meant, too.
  to: to === undefined ? undefined : new Date(new Date(`${to}T00:00:00Z`).getTime() + dayMs),
})

const findCursor = (cursor: string | undefined) => (cursor !== undefined && isUuid(cursor) ? cursor : undefined)

/** Every day has a bar, also those without a scan. */
function toDays(usage: (Counts & { day: string })[], since: Date) {
  return Array.from({ length: shownDays }, (_, n) => {
    const day = toDay(new Date(since.getTime() + n * dayMs))
    const sum = { ...none }
    for (const row of usage.filter((one) => one.day === day)) {
      for (const status of Object.keys(none) as (keyof Counts)[]) sum[status] += row[status]
    }
    return { day, ...sum }
  })
}

const total = ({ clean, threat, error, pending }: Counts) => clean + threat + error + pending

const toCredits = ({
  creditLimit,
  creditRemaining,
  period,
}: {
  creditLimit: number
  creditRemaining: number
  period: { end: Date }
}) => ({
  ...{ credit_limit: creditLimit, credit_remaining: creditRemaining, period_end: period.end.toISOString() },
})

function toRunOut(remaining: number, perDay: number, now: Date, periodEnd: Date): string | null {
  if (perDay === 0) return null
  const at = new Date(now.getTime() + (remaining / perDay) * dayMs)
  return at < periodEnd ? at.toISOString() : null
}

const toDay = (date: Date) => date.toISOString().slice(0, 10)
const toDayStart = (now: Date, daysAgo: number) => new Date(Date.parse(`${toDay(now)}T00:00:00Z`) - daysAgo * dayMs)

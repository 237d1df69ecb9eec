export type Plan = { name: string; creditsPerPeriod: number; rate: Rate }

type Balance = { creditLimit: number; creditRemaining: number; period: Period }

export type Account = {
  id: string
  name: string
  plan: string
  /** What the account has instead of its plan's own, where it differs. */
  creditsPerPeriod: number
  rate: Rate
  /** A picture that is sexy, and no more than that, is a threat to this account. */
  flagsSexy: boolean
  /** That its URLs may name; null: all that are public. */
  downloadHosts: string[] | null
  balance: Balance
  createdAt: Date
  expiresAt: Date | null
  suspendedAt: Date | null
}

export type ApiKey = {
  id: string
  accountId: string
  name: string
  prefix: string
  /** Its scans are answered by name, not by engines, and cost nothing. */
  isTest: boolean
  createdAt: Date
  lastUsedAt: Date | null
  expiresAt: Date | null
  revokedAt: Date | null
}

/** `opening` and `adjust` complete the four of everyday life, so that an account's rows always sum to its balance. */
export type LedgerKind = 'opening' | 'debit' | 'refund' | 'grant' | 'roll' | 'adjust'

export type LedgerEntry = {
  id: string
  kind: LedgerKind
  amount: number
  balance: number
  scanId: string | null
  note: string | null
  at: Date
}

/** So many requests in each window; a window opens with its first request. */
export type Rate = { requests: number; periodSeconds: number }

const unitSeconds = { s: 1, m: 60, h: 3600, d: 86400 } as const
const maxRequests = 2_000_000_000
const maxPeriodSeconds = 31 * 86400

/** Reads `50/1m`. Returns undefined when it is not a rate. */
export function findRate(text: string): Rate | undefined {
  const match = /^(\d{1,10})\/(\d{1,7})([smhd])$/.exec(text)
  if (match === null) return undefined
  const requests = Number(match[1])
  const periodSeconds = Number(match[2]) * unitSeconds[match[3] as keyof typeof unitSeconds]
  if (requests < 1 || requests > maxRequests || periodSeconds < 1 || periodSeconds > maxPeriodSeconds) return undefined
  return { requests, periodSeconds }
}

/** The window as clients read it in X-Rate-Limit-Limit: `1m`, `90s`, `1d`. */
export function toPeriodText(periodSeconds: number): string {
  for (const unit of ['d', 'h', 'm'] as const) {
    if (periodSeconds % unitSeconds[unit] === 0) return `${periodSeconds / unitSeconds[unit]}${unit}`
  }
  return `${periodSeconds}s`
}

export const toRateText = (rate: Rate) => `${rate.requests}/${toPeriodText(rate.periodSeconds)}`

/** A billing period: from `start`, up to but not including `end`. */
export type Period = { start: Date; end: Date }

/**
 * The month-long period that holds `now`, counted from the account's anchor. Counting from the anchor, not from the
 * last period, keeps an account of the 31st on the 31st after it has passed through February.
 */
export function periodAt(anchor: Date, now: Date): Period {
  const monthsApart = (now.getUTCFullYear() - anchor.getUTCFullYear()) * 12 + now.getUTCMonth() - anchor.getUTCMonth()
  // The calendar difference is right or one too many, when the day of the month has not come yet.
  const months = Math.max(0, addMonths(anchor, monthsApart) > now ? monthsApart - 1 : monthsApart)
  return { start: addMonths(anchor, months), end: addMonths(anchor, months + 1) }
}

/** The same day and time so many months on, or the last day of a month that is too short. */
function addMonths(date: Date, months: number): Date {
  const result = new Date(date)
  result.setUTCDate(1)
  result.setUTCMonth(result.getUTCMonth() + months)
  const lastDay = new Date(Date.UTC(result.getUTCFullYear(), result.getUTCMonth() + 1, 0)).getUTCDate()
  result.setUTCDate(Math.min(date.getUTCDate(), lastDay))
  return result
}

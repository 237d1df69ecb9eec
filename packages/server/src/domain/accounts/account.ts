import type { KeyRestrictions } from './keys.ts'

export type Plan = {
  name: string
  creditsPerPeriod: number
  /** The rate of each key. */
  rate: Rate
  /** The rate of all keys of an account together; null for none. */
  accountRate: Rate | null
  /** Active keys that an account may have; null for any number. */
  maxKeys: number | null
}

type Balance = { creditLimit: number; creditRemaining: number; period: Period }

export type Account = {
  id: string
  name: string
  plan: string
  /** The credits of the plan, or those of the account where they differ; the same holds for `rate`. */
  creditsPerPeriod: number
  rate: Rate
  /** The rate of all keys together and the number of keys, by the plan; null without a limit. */
  accountRate: Rate | null
  maxKeys: number | null
  /** Whether a picture that is sexy, but not pornographic, is a threat. */
  flagsSexy: boolean
  /** The hosts that its URLs may name; null for every public host. */
  downloadHosts: string[] | null
  /** Receiver of a webhook for each revision of a result; null for none. */
  revisionUrl: string | null
  /** How many engines must agree on a threat, such as `quorum 2`; null for the policy of the installation. */
  verdictPolicy: string | null
  balance: Balance
  createdAt: Date
  expiresAt: Date | null
  isExpired: boolean
  suspendedAt: Date | null
  suspendedReason: string | null
}

export type ApiKey = {
  id: string
  accountId: string
  name: string
  prefix: string
  /** Scans with a test key get the result that their name asks for, run no engine and cost nothing. */
  isTest: boolean
  restrictions: KeyRestrictions
  createdAt: Date
  lastUsedAt: Date | null
  expiresAt: Date | null
  isExpired: boolean
  revokedAt: Date | null
  /** Email address of the member who created the key in the console. */
  createdBy: string | null
}

/** `opening` and `adjust` record the changes by operators, so that the entries of an account sum to its balance. */
type LedgerKind = 'opening' | 'debit' | 'refund' | 'grant' | 'roll' | 'adjust'

export type LedgerEntry = {
  id: string
  kind: LedgerKind
  amount: number
  balance: number
  scanId: string | null
  note: string | null
  at: Date
}

/** The number of requests in each window. A window opens with its first request. */
export type Rate = { requests: number; periodSeconds: number }

const unitSeconds = { s: 1, m: 60, h: 3600, d: 86400 } as const
const maxRequests = 2_000_000_000
const maxPeriodSeconds = 31 * 86400

/** Reads a rate such as `50/1m`. */
export function findRate(text: string): Rate | undefined {
  const match = /^(\d{1,10})\/(\d{1,7})([smhd])$/.exec(text)
  if (match === null) return undefined
  const requests = Number(match[1])
  const periodSeconds = Number(match[2]) * unitSeconds[match[3] as keyof typeof unitSeconds]
  if (requests < 1 || requests > maxRequests || periodSeconds < 1 || periodSeconds > maxPeriodSeconds) return undefined
  return { requests, periodSeconds }
}

/** The length of the window as in X-Rate-Limit-Limit: `1m`, `90s`, `1d`. */
export function toPeriodText(periodSeconds: number): string {
  for (const unit of ['d', 'h', 'm'] as const) {
    if (periodSeconds % unitSeconds[unit] === 0) return `${periodSeconds / unitSeconds[unit]}${unit}`
  }
  return `${periodSeconds}s`
}

export const toRateText = (rate: Rate) => `${rate.requests}/${toPeriodText(rate.periodSeconds)}`

/** A billing period, from `start` up to but not including `end`. */
export type Period = { start: Date; end: Date }

/**
 * The period of one month that contains `now`. Months are counted from the anchor, not from the last period, so that an
 * account of the 31st returns to the 31st after February. The anchor may lie in the future: the clock of the database was
 * set back, or an account came from a region whose clock is ahead.
 */
export function findPeriod(anchor: Date, now: Date): Period {
  const monthsApart = (now.getUTCFullYear() - anchor.getUTCFullYear()) * 12 + now.getUTCMonth() - anchor.getUTCMonth()
  // The difference is one too many while the day of the month has not come yet.
  const months = addMonths(anchor, monthsApart) > now ? monthsApart - 1 : monthsApart
  return { start: addMonths(anchor, months), end: addMonths(anchor, months + 1) }
}

/** Adds months; in a month that is too short, returns its last day. */
function addMonths(date: Date, months: number): Date {
  const result = new Date(date)
  result.setUTCDate(1)
  result.setUTCMonth(result.getUTCMonth() + months)
  const lastDay = new Date(Date.UTC(result.getUTCFullYear(), result.getUTCMonth() + 1, 0)).getUTCDate()
  result.setUTCDate(Math.min(date.getUTCDate(), lastDay))
  return result
}

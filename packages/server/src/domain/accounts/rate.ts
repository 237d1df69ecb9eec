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

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

import { maxCredits } from '@assay/contract'

const whole = new Intl.NumberFormat('en')
const dateTime = new Intl.DateTimeFormat(undefined, { dateStyle: 'medium', timeStyle: 'short' })
const exact = new Intl.DateTimeFormat(undefined, { dateStyle: 'medium', timeStyle: 'long' })
const clock = new Intl.DateTimeFormat(undefined, { hour: '2-digit', minute: '2-digit' })
const dayOnly = new Intl.DateTimeFormat(undefined, { dateStyle: 'medium' })
const shortDay = new Intl.DateTimeFormat(undefined, { day: 'numeric', month: 'short', timeZone: 'UTC' })
const relative = new Intl.RelativeTimeFormat('en', { numeric: 'auto' })

export const toNumber = (value: number) => whole.format(value)
export const toDateTime = (iso: string) => dateTime.format(new Date(iso))
/** A time with seconds and the zone of the viewer. */
export const toExactTime = (iso: string) => exact.format(new Date(iso))
/** Hours and minutes, in the zone of the viewer. */
export const toClock = (iso: string | undefined) => (iso === undefined ? '' : clock.format(new Date(iso)))
export const toDay = (iso: string) => dayOnly.format(new Date(iso))
export const toShortDay = (day: string | undefined) =>
  day === undefined ? '' : shortDay.format(new Date(`${day}T00:00:00Z`))

const units = ['bytes', 'KB', 'MB', 'GB', 'TB']

/** A size in units of 1024, like the limits of the interface. */
export function toBytes(bytes: number): string {
  if (bytes === 1) return '1 byte'
  const power = bytes < 1024 ? 0 : Math.min(units.length - 1, Math.floor(Math.log(bytes) / Math.log(1024)))
  const value = bytes / 1024 ** power
  return `${power === 0 ? value : value.toFixed(value < 10 ? 1 : 0)} ${units[power]}`
}

const steps: [Intl.RelativeTimeFormatUnit, number][] = [
  ['day', 86_400_000],
  ['hour', 3_600_000],
  ['minute', 60_000],
  ['second', 1000],
]

/** A time relative to now, such as “5 minutes ago” or “in 3 days”. */
export function toAge(iso: string, now = Date.now()): string {
  const ms = new Date(iso).getTime() - now
  const [unit, size] = steps.find(([, size]) => Math.abs(ms) >= size) ?? ['second', 1000]
  return relative.format(Math.round(ms / size), unit)
}

export const toSeconds = (seconds: number) =>
  seconds < 60
    ? `${seconds.toFixed(1)} s`
    : seconds < 3600
      ? `${Math.round(seconds / 60)} min`
      : `${(seconds / 3600).toFixed(1)} h`

/** The text for credits and rates that no plan limits. */
export const noLimit = 'No limit'

export const isUnlimited = (credits: number) => credits >= maxCredits

/** Reports the number of deliveries that a replay sends again. */
export const toReplayed = (count: number) =>
  count === 0
    ? 'No deliveries failed in that time.'
    : count === 1
      ? '1 delivery is sent again.'
      : `${toNumber(count)} deliveries are sent again.`

/** Describes a rate limit such as 600/1m. */
export function toRate(rate: string): string {
  const [requests = '', window = ''] = rate.split('/')
  if (isUnlimited(Number(requests))) return noLimit
  const count = Number.parseInt(window, 10)
  const unit = windows[window.at(-1) ?? ''] ?? ''
  return `${toNumber(Number(requests))} requests per ${count === 1 ? unit : `${count} ${unit}s`}`
}

const windows: Record<string, string> = { s: 'second', m: 'minute', h: 'hour', d: 'day' }

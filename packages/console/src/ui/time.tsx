import { toAge, toDay, toExactTime } from './format.ts'

type Props = { at: string | null; otherwise?: string }

/** A time relative to now. Its tooltip is the exact time, in the zone of the viewer. */
export function Age({ at, otherwise = '–' }: Props) {
  if (at === null) return otherwise
  return (
    <time dateTime={at} title={toExactTime(at)} className="whitespace-nowrap">
      {toAge(at)}
    </time>
  )
}

/** A day. Its tooltip is the exact time. */
export function Day({ at, otherwise = '–' }: Props) {
  if (at === null) return otherwise
  return (
    <time dateTime={at} title={toExactTime(at)} className="whitespace-nowrap">
      {toDay(at)}
    </time>
  )
}

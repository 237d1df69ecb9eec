import { Meter } from '../../ui/charts.tsx'
import { isUnlimited, noLimit, toDay, toNumber } from '../../ui/format.ts'
import { Figure } from '../../ui/page.tsx'

type Credits = { credit_limit: number; credit_remaining: number; period_end: string }

/** Remaining credits, on the overview and usage pages. */
export function CreditsFigure({ credit_limit: limit, credit_remaining: remaining, period_end }: Credits) {
  if (isUnlimited(limit)) {
    return <Figure label="Credits left" value={noLimit} note={`${toNumber(limit - remaining)} used in this period`} />
  }
  return (
    <Figure
      label="Credits left"
      value={toNumber(remaining)}
      note={
        <span className="flex flex-col gap-1.5 pt-1">
          <Meter label="Credits left" value={remaining} max={limit} />
          <span>
            of {toNumber(limit)}, renewed on {toDay(period_end)}
          </span>
        </span>
      }
    />
  )
}

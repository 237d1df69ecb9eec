import { toNumber } from './format.ts'

/** A bar for a remaining amount, such as credits. */
export function Meter({ label, value, max }: { label: string; value: number; max: number }) {
  const share = max === 0 ? 0 : Math.min(1, value / max)
  return (
    <div
      role="img"
      aria-label={`${label}: ${toNumber(value)} of ${toNumber(max)}`}
      className="h-2 overflow-hidden rounded-full bg-sunk"
    >
      <svg viewBox="0 0 100 4" preserveAspectRatio="none" className="block h-full w-full" aria-hidden="true">
        <rect width={share * 100} height="4" className={share < 0.1 ? 'fill-threat' : 'fill-brand'} />
      </svg>
    </div>
  )
}

const fills = { clean: 'fill-clean', threat: 'fill-threat', error: 'fill-error' }

/** A bar for a score from 0 to 1. */
export function ScoreBar({ label, score, tone }: { label: string; score: number; tone: 'clean' | 'threat' | 'error' }) {
  return (
    <div className="grid grid-cols-[7rem_1fr_3.5rem] items-center gap-3">
      <span className="text-soft">{label}</span>
      <svg
        viewBox="0 0 100 4"
        preserveAspectRatio="none"
        className="h-2 w-full rounded-full bg-sunk"
        aria-hidden="true"
      >
        <rect width={score * 100} height="4" className={fills[tone]} />
      </svg>
      <span className="text-right tabular-nums">{(score * 100).toFixed(1)} %</span>
    </div>
  )
}

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

const parts = ['clean', 'threat', 'error', 'pending'] as const
type Bar = { label: string } & Record<(typeof parts)[number], number>
const fills = { clean: 'fill-clean', threat: 'fill-threat', error: 'fill-error', pending: 'fill-pending' }
const dots = { clean: 'bg-clean', threat: 'bg-threat', error: 'bg-error', pending: 'bg-pending' }

/** A bar for each day, stacked by verdict, with the same numbers in a table for screen readers. */
export function StackedBars({ bars, caption }: { bars: Bar[]; caption: string }) {
  const totals = bars.map((bar) => parts.reduce((sum, part) => sum + bar[part], 0))
  const max = Math.max(0, ...totals)
  const used = parts.filter((part) => bars.some((bar) => bar[part] > 0))
  return (
    <figure className="relative">
      <Drawing bars={bars} max={Math.max(1, max)} />
      <div className="mt-1 flex justify-between text-xs text-faint" aria-hidden="true">
        <span>{bars[0]?.label}</span>
        <span>maximum per day: {toNumber(max)}</span>
        <span>{bars.at(-1)?.label}</span>
      </div>
      <figcaption className="mt-3 flex flex-wrap gap-x-4 gap-y-1 text-soft">
        <span className="sr-only">{caption}</span>
        {used.map((part) => (
          <span key={part} className="inline-flex items-center gap-1.5">
            <span className={`size-2.5 rounded-sm ${dots[part]}`} aria-hidden="true" />
            {part}
          </span>
        ))}
      </figcaption>
      {/* The wrapper clips the table: sr-only on a table itself has no effect on its size. */}
      <div className="sr-only">
        <table>
          <caption>{caption}</caption>
          <tbody>
            {bars.map((bar) => (
              <tr key={bar.label}>
                <th scope="row">{bar.label}</th>
                {parts.map((part) => (
                  <td key={part}>
                    {bar[part]} {part}
                  </td>
                ))}
              </tr>
            ))}
          </tbody>
        </table>
      </div>
    </figure>
  )
}

const chartHeight = 40
const barHeight = 38

function Drawing({ bars, max }: { bars: Bar[]; max: number }) {
  const width = 100 / Math.max(1, bars.length)
  return (
    <svg viewBox={`0 0 100 ${chartHeight}`} preserveAspectRatio="none" className="h-40 w-full" aria-hidden="true">
      {[0, 0.5, 1].map((line) => (
        <line
          key={line}
          x1="0"
          x2="100"
          y1={chartHeight - line * barHeight}
          y2={chartHeight - line * barHeight}
          className="stroke-line"
          strokeWidth="1"
          vectorEffect="non-scaling-stroke"
        />
      ))}
      {bars.map((bar, i) => {
        let top = chartHeight
        return (
          <g key={bar.label}>
            <title>{`${bar.label}: ${parts.map((part) => `${bar[part]} ${part}`).join(', ')}`}</title>
            {parts.map((part) => {
              const height = (bar[part] / max) * barHeight
              top -= height
              return (
                <rect
                  key={part}
                  x={i * width + width * 0.15}
                  y={top}
                  width={width * 0.7}
                  height={height}
                  className={fills[part]}
                />
              )
            })}
          </g>
        )
      })}
    </svg>
  )
}

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

import { useState } from 'react'
import { toClock, toExactTime, toShortDay } from './format.ts'
import { Card } from './page.tsx'
import { Table } from './table.tsx'

type Tone = 'clean' | 'threat' | 'error' | 'pending' | 'brand'
/** A null is a step without a value, such as the response time of a minute without requests. */
type Series = { name: string; tone: Tone; values: (number | null)[] }

type Chart = {
  title: string
  /** Unit of the values, such as `ms` or `per minute`. */
  unit: string
  /** Beginning of each step. */
  times: string[]
  /** The days that `times` names, instead of the times of a day. */
  isDaily?: boolean
  series: Series[]
}

const fills = {
  clean: 'fill-clean',
  threat: 'fill-threat',
  error: 'fill-error',
  pending: 'fill-pending',
  brand: 'fill-brand',
}
const strokes = {
  clean: 'stroke-clean',
  threat: 'stroke-threat',
  error: 'stroke-error',
  pending: 'stroke-pending',
  brand: 'stroke-brand',
}

/** Bars over time, stacked, with axes, a legend, and the same numbers as a table. */
export const BarChart = (chart: Chart) => (
  <ChartCard {...chart}>
    <BarFigure {...chart} />
  </ChartCard>
)

/** The bars of `BarChart` without a card around them. */
export const BarFigure = (chart: Chart) => <Figure {...chart} max={findMax(sumSteps(chart))} Drawing={Bars} />

/** Lines over time, with axes, a legend, and the same numbers as a table. Every second line is dashed. */
export const LineChart = (chart: Chart) => (
  <ChartCard {...chart}>
    <Figure {...chart} max={findMax(chart.series.flatMap(({ values }) => values))} Drawing={Lines} />
  </ChartCard>
)

const ChartCard = ({ title, unit, children }: Chart & { children: React.ReactNode }) => (
  <Card title={title} actions={<Unit>{unit}</Unit>}>
    {children}
  </Card>
)

/** The unit of a chart, in the corner of its card. */
export const Unit = ({ children }: { children: string }) => <span className="text-xs text-faint">{children}</span>

const height = 100

function Figure({
  max,
  Drawing,
  ...chart
}: Chart & { max: number; Drawing: (props: Chart & { max: number }) => React.JSX.Element }) {
  const { title, unit, times, series, isDaily } = chart
  const toLabel = isDaily ? toShortDay : toClock
  const highest = Math.max(0, ...series.flatMap(({ values }) => values.map((value) => value ?? 0)))
  return (
    <>
      <figure className="@container">
        <div className="grid grid-cols-[auto_minmax(0,1fr)] gap-x-2 text-xs text-faint tabular-nums">
          <div className="flex h-36 flex-col justify-between text-right leading-none" aria-hidden="true">
            {[max, max / 2, 0].map((tick) => (
              <span key={tick}>{toShort(tick)}</span>
            ))}
          </div>
          <svg
            viewBox={`0 0 ${times.length} ${height}`}
            preserveAspectRatio="none"
            className="h-36 w-full overflow-visible py-1.5"
            role="img"
            aria-label={`${title}, ${unit}, from ${toLabel(times[0])} to ${toLabel(times.at(-1))}. Highest value: ${toShort(highest)}.`}
          >
            {[0, height / 2, height].map((y) => (
              <line key={y} x1={0} x2={times.length} y1={y} y2={y} className="stroke-line" {...thin} />
            ))}
            <Drawing {...chart} max={max} />
            {times.map((time, n) => (
              <rect key={time} x={n} width={1} height={height} className="fill-transparent hover:fill-ink/5">
                <title>{describeStep(chart, n)}</title>
              </rect>
            ))}
          </svg>
          <div className="col-start-2 mt-1 flex justify-between whitespace-nowrap" aria-hidden="true">
            {[0, 0.25, 0.5, 0.75, 1].map((share) => (
              <span key={share} className={share === 0.25 || share === 0.75 ? '@max-sm:hidden' : ''}>
                {toLabel(times[Math.round(share * (times.length - 1))])}
              </span>
            ))}
          </div>
        </div>
        <figcaption className="mt-3 flex flex-wrap gap-x-4 gap-y-1 text-soft">
          {series.map(({ name, tone }, n) => (
            <span key={name} className="inline-flex items-center gap-1.5">
              <svg viewBox="0 0 16 8" className="h-2 w-4" aria-hidden="true">
                {Drawing === Bars ? (
                  <rect width="16" height="8" rx="2" className={fills[tone]} />
                ) : (
                  <line
                    x1="0"
                    x2="16"
                    y1="4"
                    y2="4"
                    strokeWidth="2"
                    strokeDasharray={dash(n)}
                    className={strokes[tone]}
                  />
                )}
              </svg>
              {name}
            </span>
          ))}
        </figcaption>
      </figure>
      <ChartTable {...chart} />
    </>
  )
}

const thin = { strokeWidth: 1, vectorEffect: 'non-scaling-stroke' } as const
const dash = (n: number) => (n % 2 === 0 ? undefined : '4 3')

function Bars({ times, series, max }: Chart & { max: number }) {
  const bars = times.map((time, n) => {
    let top = height
    return (
      <g key={time}>
        {series.map(({ name, tone, values }) => {
          const bar = ((values[n] ?? 0) / max) * height
          top -= bar
          return bar === 0 ? null : (
            <rect key={name} x={n + 0.1} y={top} width={0.8} height={bar} className={fills[tone]} />
          )
        })}
      </g>
    )
  })
  return <g>{bars}</g>
}

function Lines({ series, max }: Chart & { max: number }) {
  const lines = series.map(({ name, tone, values }, n) => (
    <path
      key={name}
      d={toPath(values, max)}
      fill="none"
      strokeWidth="1.75"
      strokeLinejoin="round"
      strokeLinecap="round"
      strokeDasharray={dash(n)}
      vectorEffect="non-scaling-stroke"
      className={strokes[tone]}
    />
  ))
  return <g>{lines}</g>
}

/** A line through the middle of each step. A value alone is as wide as its step. */
function toPath(values: (number | null)[], max: number): string {
  return values
    .map((value, n) => {
      if (value === null) return ''
      const y = height - (value / max) * height
      const isFirst = (values[n - 1] ?? null) === null
      const isAlone = isFirst && (values[n + 1] ?? null) === null
      return isAlone ? `M${n} ${y}H${n + 1}` : `${isFirst ? 'M' : 'L'}${n + 0.5} ${y}`
    })
    .join('')
}

/** The numbers of the chart, newest first. It is rendered only while it is open. */
function ChartTable({ title, unit, times, series, isDaily }: Chart) {
  const [isOpen, setOpen] = useState(false)
  return (
    <details className="mt-3" onToggle={(event) => setOpen(event.currentTarget.open)}>
      <summary className="w-fit cursor-pointer text-soft hover:text-ink">
        Show as table<span className="sr-only">: {title}</span>
      </summary>
      {isOpen && (
        <div className="mt-2">
          <Table
            caption={`${title}, ${unit}`}
            rows={times.map((time, n) => ({ time, n })).reverse()}
            keyOf={({ time }) => time}
            columns={[
              { title: isDaily ? 'Day' : 'Time', cell: ({ time }) => toStepName(time, isDaily) },
              ...series.map(({ name, values }) => ({
                title: name,
                isNumber: true,
                cell: ({ n }: { n: number }) => toValue(values[n]),
              })),
            ]}
          />
        </div>
      )}
    </details>
  )
}

const toStepName = (time: string, isDaily = false) => (isDaily ? toShortDay(time) : toExactTime(time))

const describeStep = ({ times, series, unit, isDaily }: Chart, n: number) =>
  [
    toStepName(times[n] ?? '', isDaily),
    ...series.map(({ name, values }) => `${name}: ${toValue(values[n])} ${unit}`),
  ].join('\n')

const short = new Intl.NumberFormat('en', { maximumFractionDigits: 1 })
const toShort = (value: number) => short.format(value)
const toValue = (value: number | null | undefined) => (value === null || value === undefined ? '–' : toShort(value))

const sumSteps = ({ times, series }: Chart) =>
  times.map((_, n) => series.reduce((sum, { values }) => sum + (values[n] ?? 0), 0))

/** The end of the axis: a round number whose half is round too. */
function findMax(values: (number | null)[]): number {
  const highest = Math.max(0, ...values.map((value) => value ?? 0))
  if (highest === 0) return 2
  const power = 10 ** Math.floor(Math.log10(highest))
  return power * ([1, 2, 4, 6, 8].find((step) => step * power >= highest && (step > 1 || power > 1)) ?? 10)
}

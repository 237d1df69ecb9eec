import type { ActivitySpanName, VerdictPoint } from '@assay/contract/admin'
import { useSearchParams } from '../api/use-search-params.ts'
import { BarChart, BarFigure, LineChart } from './time-chart.tsx'

const spans: [ActivitySpanName, string][] = [
  ['hour', 'Last hour'],
  ['day', 'Last day'],
]

/** The span that the address of the page names. */
export function useSpan(): [ActivitySpanName, (span: ActivitySpanName) => void] {
  const [params, setParams] = useSearchParams()
  return [params.span === 'day' ? 'day' : 'hour', (span) => setParams({ span: span === 'hour' ? undefined : span })]
}

/** Buttons that choose between the last hour and the last day. */
export function SpanSwitch({ span, onChange }: { span: ActivitySpanName; onChange: (span: ActivitySpanName) => void }) {
  return (
    <fieldset className="flex gap-1 rounded-lg border border-line bg-panel p-0.5">
      <legend className="sr-only">Time span of the charts</legend>
      {spans.map(([name, label]) => (
        <button
          key={name}
          type="button"
          aria-pressed={name === span}
          onClick={() => onChange(name)}
          className="rounded-md px-3 py-1 text-soft hover:bg-sunk aria-pressed:bg-brand-soft aria-pressed:font-medium aria-pressed:text-brand"
        >
          {label}
        </button>
      ))}
    </fieldset>
  )
}

type Day = { day: string; clean: number; threat: number; error: number; pending: number }

/** A bar for each day, stacked by verdict. */
export function DailyScans({ title, days }: { title: string; days: Day[] }) {
  const verdicts = (['clean', 'threat', 'error', 'pending'] as const).filter((verdict) =>
    days.some((day) => day[verdict] > 0),
  )
  return (
    <BarFigure
      title={title}
      unit="per day"
      times={days.map(({ day }) => day)}
      isDaily
      series={verdicts.map((verdict) => ({
        name: verdict,
        tone: verdict,
        values: days.map((day) => day[verdict]),
      }))}
    />
  )
}

type Points = { step_seconds: number; points: VerdictPoint[] }

export const toStepUnit = (stepSeconds: number) =>
  stepSeconds === 60 ? 'per minute' : `per ${stepSeconds / 60} minutes`

/** Scans of both kinds by verdict, and their times. */
export function ScanCharts({ step_seconds, points, timesTitle }: Points & { timesTitle: string }) {
  const times = points.map(({ at }) => at)
  return (
    <>
      {(['malware', 'nsfw_image'] as const).map((kind) => (
        <BarChart
          key={kind}
          title={kind === 'malware' ? 'Malware scans' : 'Image scans'}
          unit={toStepUnit(step_seconds)}
          times={times}
          series={(['clean', 'threat', 'error'] as const).map((verdict) => ({
            name: verdict,
            tone: verdict,
            values: points.map((point) => point[kind][verdict]),
          }))}
        />
      ))}
      <LineChart
        title={timesTitle}
        unit="ms"
        times={times}
        series={[
          { name: 'p50', tone: 'brand', values: points.map(({ p50_ms }) => p50_ms) },
          { name: 'p99', tone: 'pending', values: points.map(({ p99_ms }) => p99_ms) },
        ]}
      />
    </>
  )
}

export function DeliveryChart({ step_seconds, points, title }: Points & { title: string }) {
  return (
    <BarChart
      title={title}
      unit={toStepUnit(step_seconds)}
      times={points.map(({ at }) => at)}
      series={[
        { name: 'delivered', tone: 'clean', values: points.map(({ deliveries }) => deliveries.delivered) },
        { name: 'failed', tone: 'threat', values: points.map(({ deliveries }) => deliveries.failed) },
      ]}
    />
  )
}

type Queue = { waiting: number; oldest_seconds: number }

/** The length of the queue of background scans, and the age of its oldest scan. */
export function QueueCharts({ points }: { points: { at: string; queue: Queue | null }[] }) {
  const times = points.map(({ at }) => at)
  return (
    <>
      <LineChart
        title="Background scans waiting"
        unit="scans"
        times={times}
        series={[{ name: 'waiting', tone: 'brand', values: points.map(({ queue }) => queue?.waiting ?? null) }]}
      />
      <LineChart
        title="Oldest waiting scan"
        unit="seconds"
        times={times}
        series={[{ name: 'age', tone: 'brand', values: points.map(({ queue }) => queue?.oldest_seconds ?? null) }]}
      />
    </>
  )
}

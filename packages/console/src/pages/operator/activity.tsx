import type { ServiceActivity } from '@assay/contract/admin'
import { useRead } from '../../api/hooks.ts'
import { DeliveryChart, QueueCharts, ScanCharts, SpanSwitch, toStepUnit, useSpan } from '../../ui/activity-charts.tsx'
import { Loaded } from '../../ui/states.tsx'
import { BarChart, LineChart } from '../../ui/time-chart.tsx'

/** Charts of the last hour or day, of all nodes together. */
export function Activity() {
  const [span, setSpan] = useSpan()
  const activity = useRead('getActivity', { query: { span } }, { liveMs: 15_000 })
  return (
    <section className="flex flex-col gap-4" aria-labelledby="activity">
      <div className="flex flex-wrap items-center justify-between gap-3">
        <h2 id="activity" className="text-lg font-semibold">
          All nodes over time
        </h2>
        <SpanSwitch span={span} onChange={setSpan} />
      </div>
      <Loaded query={activity}>{(data) => <Charts {...data} />}</Loaded>
    </section>
  )
}

const megabyte = 1024 * 1024

function Charts({ step_seconds, points }: ServiceActivity) {
  const times = points.map(({ at }) => at)
  return (
    <div className="grid gap-4 lg:grid-cols-2">
      <ScanCharts step_seconds={step_seconds} points={points} timesTitle="Scan response time" />
      <BarChart
        title="Engine time"
        unit={`seconds ${toStepUnit(step_seconds)}`}
        times={times}
        series={[
          { name: 'malware', tone: 'brand', values: points.map(({ engine_seconds }) => engine_seconds.malware) },
          { name: 'images', tone: 'pending', values: points.map(({ engine_seconds }) => engine_seconds.nsfw_image) },
        ]}
      />
      <QueueCharts points={points} />
      <DeliveryChart title="Webhook attempts" step_seconds={step_seconds} points={points} />
      <LineChart
        title="Memory without engines"
        unit="MB"
        times={times}
        series={[
          {
            name: 'service processes',
            tone: 'brand',
            values: points.map(({ memory_bytes }) => memory_bytes && memory_bytes / megabyte),
          },
        ]}
      />
    </div>
  )
}

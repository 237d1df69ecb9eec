import type { AccountActivity } from '@assay/contract/admin'
import { useRead } from '../../api/hooks.ts'
import { DeliveryChart, QueueCharts, ScanCharts, SpanSwitch, useSpan } from '../../ui/activity-charts.tsx'
import { toNumber, toSeconds } from '../../ui/format.ts'
import { Loaded } from '../../ui/states.tsx'

/** The server counts no further. */
const mostCounted = 10_000

/** Charts of the last hour or day of the account. */
export function Activity() {
  const [span, setSpan] = useSpan()
  const activity = useRead('getAccountActivity', { query: { span } }, { liveMs: 15_000 })
  return (
    <section className="flex flex-col gap-4" aria-labelledby="activity">
      <div className="flex flex-wrap items-center justify-between gap-3">
        <h2 id="activity" className="text-lg font-semibold">
          Recent activity
        </h2>
        <SpanSwitch span={span} onChange={setSpan} />
      </div>
      <Loaded query={activity}>
        {(data) => (
          <>
            <p className="text-soft">{describeQueue(data.queue)}</p>
            <div className="grid gap-4 lg:grid-cols-2">
              <ScanCharts {...data} timesTitle="Time to verdict" />
              <QueueCharts points={data.points} />
              <DeliveryChart {...data} title="Webhooks" />
            </div>
          </>
        )}
      </Loaded>
    </section>
  )
}

function describeQueue({ waiting, oldest_seconds }: AccountActivity['queue']): string {
  if (waiting === 0) return 'No background scan is waiting.'
  const scans =
    waiting >= mostCounted
      ? `${toNumber(mostCounted)} or more background scans are`
      : waiting === 1
        ? '1 background scan is'
        : `${toNumber(waiting)} background scans are`
  return `${scans} waiting; the oldest for ${toSeconds(oldest_seconds)}.`
}

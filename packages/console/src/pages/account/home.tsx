import type { Overview } from '@assay/contract/admin'
import { Link } from '@tanstack/react-router'
import { useRead, useSession } from '../../api/hooks.ts'
import { DailyScans } from '../../ui/activity-charts.tsx'
import { buttonClass } from '../../ui/button.tsx'
import { toNumber } from '../../ui/format.ts'
import { Card, Figure, Page } from '../../ui/page.tsx'
import { Empty, Loaded } from '../../ui/states.tsx'
import { Unit } from '../../ui/time-chart.tsx'
import { Checklist } from './checklist.tsx'
import { CreditsFigure } from './credits-figure.tsx'
import { Notices } from './notices.tsx'
import { ScanTable } from './scan-table.tsx'

/** Summary of the account. The router sends operators without an account to the status page instead. */
export function HomePage() {
  const session = useSession()
  const overview = useRead('getOverview', {}, { liveMs: 5000 })
  return (
    <Page
      title="Overview"
      about={session.data?.account?.name}
      actions={
        <Link to="/scan" className={buttonClass('primary')}>
          Scan a file
        </Link>
      }
    >
      <Loaded query={overview}>
        {(data) => (
          <>
            {session.data?.account?.role === 'owner' && <Notices />}
            <Checklist done={data.checklist} />
            <Figures {...data} />
            <Card title="Scans in the last 30 days" actions={<Unit>per day</Unit>}>
              {data.days.some(({ clean, threat, error, pending }) => clean + threat + error + pending > 0) ? (
                <DailyScans title="Scans in the last 30 days by verdict" days={data.days} />
              ) : (
                <Empty title="No scans yet">This chart shows the scans of each day by verdict.</Empty>
              )}
            </Card>
            <Latest latest={data.latest} />
          </>
        )}
      </Loaded>
    </Page>
  )
}

function Figures({ today, webhooks, ...credits }: Overview) {
  const finishedDeliveries = webhooks.delivered + webhooks.failed
  return (
    <div className="grid grid-cols-2 gap-3 sm:gap-4 xl:grid-cols-4">
      <CreditsFigure {...credits} />
      <Figure
        label="Scans today"
        value={toNumber(today.scans)}
        note={today.pending > 0 ? `${toNumber(today.pending)} pending` : 'since midnight UTC'}
      />
      <Figure
        label="Threats today"
        value={<span className={today.threat > 0 ? 'text-threat' : ''}>{toNumber(today.threat)}</span>}
        note={today.error > 0 ? `and ${toNumber(today.error)} errors` : 'and no errors'}
      />
      <Figure
        label="Webhooks delivered"
        value={finishedDeliveries === 0 ? 'None yet' : `${toShare(webhooks.delivered / finishedDeliveries)} %`}
        note={
          <Link to="/webhooks" className="hover:underline">
            {toNumber(webhooks.failed)} failed, {toNumber(webhooks.waiting)} waiting
            {webhooks.paused > 0 && `, ${toNumber(webhooks.paused)} receivers paused`}
          </Link>
        }
      />
    </div>
  )
}

/** A percentage that is 100 only if no delivery failed. */
const toShare = (share: number) => (share === 1 ? '100' : (Math.floor(share * 1000) / 10).toFixed(1))

function Latest({ latest }: Pick<Overview, 'latest'>) {
  return (
    <section className="flex flex-col gap-3">
      <div className="flex items-center justify-between gap-3">
        <h2 className="font-semibold">Latest scans</h2>
        <Link to="/history" className="font-medium text-brand hover:underline">
          All scans
        </Link>
      </div>
      {latest.length === 0 ? (
        <Empty title="No scans yet">
          <Link to="/scan" className="font-medium text-brand hover:underline">
            Scan a file
          </Link>{' '}
          here, or use one of your API keys.
        </Empty>
      ) : (
        <ScanTable caption="Latest scans" scans={latest} />
      )}
    </section>
  )
}

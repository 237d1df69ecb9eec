import type { Overview } from '@assay/contract/admin'
import { Link } from '@tanstack/react-router'
import { useRead, useSession } from '../../api/hooks.ts'
import { buttonClass } from '../../ui/button.tsx'
import { Meter, StackedBars } from '../../ui/charts.tsx'
import { Empty, Reading } from '../../ui/feedback.tsx'
import { isUnlimited, toDay, toNumber, toShortDay } from '../../ui/format.ts'
import { Card, Figure, Page } from '../../ui/page.tsx'
import { Checklist } from './checklist.tsx'
import { ScanTable } from './scan-table.tsx'

/** The account at a glance. An operator who holds none is led to the status of the service before this is drawn. */
export function HomePage() {
  const session = useSession()
  const overview = useRead('getOverview', {}, { liveMs: 5000 })
  return (
    <Page
      title="Overview"
      about={session.data?.account?.name}
      actions={
        <Link to="/scan" className={buttonClass('main')}>
          Scan something
        </Link>
      }
    >
      <Reading of={overview}>
        {(data) => (
          <>
            <Checklist done={data.checklist} />
            <Figures {...data} />
            <Card title="Scans of the last 30 days">
              {data.days.some(({ clean, threat, error, pending }) => clean + threat + error + pending > 0) ? (
                <StackedBars
                  caption="Scans of the last 30 days by verdict"
                  bars={data.days.map(({ day, ...counts }) => ({ label: toShortDay(day), ...counts }))}
                />
              ) : (
                <Empty title="No scans yet">Every day gets a bar here, by verdict.</Empty>
              )}
            </Card>
            <Latest latest={data.latest} />
          </>
        )}
      </Reading>
    </Page>
  )
}

function Figures({ credit_limit, credit_remaining, period_end, plan, today, webhooks }: Overview) {
  const sent = webhooks.delivered + webhooks.failed
  return (
    <div className="grid grid-cols-2 gap-3 sm:gap-4 xl:grid-cols-4">
      <Figure
        label="Credits left"
        value={isUnlimited(credit_limit) ? 'No limit' : toNumber(credit_remaining)}
        note={
          isUnlimited(credit_limit) ? (
            `Plan ${plan}, ${toNumber(credit_limit - credit_remaining)} used`
          ) : (
            <span className="flex flex-col gap-1.5 pt-1">
              <Meter label="Credits left" value={credit_remaining} max={credit_limit} />
              <span>
                of {toNumber(credit_limit)}, new ones on {toDay(period_end)}
              </span>
            </span>
          )
        }
      />
      <Figure
        label="Scans today"
        value={toNumber(today.scans)}
        note={today.pending > 0 ? `${toNumber(today.pending)} on their way` : 'since midnight UTC'}
      />
      <Figure
        label="Threats today"
        value={<span className={today.threat > 0 ? 'text-threat' : ''}>{toNumber(today.threat)}</span>}
        note={today.error > 0 ? `and ${toNumber(today.error)} could not be scanned` : 'and no errors'}
      />
      <Figure
        label="Webhooks delivered"
        value={sent === 0 ? 'None yet' : `${toShare(webhooks.delivered / sent)} %`}
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

/** Never 100 while one has failed. */
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
        <Empty title="Nothing was scanned yet">
          <Link to="/scan" className="font-medium text-brand hover:underline">
            Scan a file
          </Link>{' '}
          here, or with a key of yours.
        </Empty>
      ) : (
        <ScanTable caption="Latest scans" scans={latest} />
      )}
    </section>
  )
}

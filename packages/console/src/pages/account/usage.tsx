import type { Usage } from '@assay/contract/admin'
import { useRead } from '../../api/hooks.ts'
import { useSearchParams } from '../../api/use-search-params.ts'
import { DailyScans } from '../../ui/activity-charts.tsx'
import { SelectField } from '../../ui/field.tsx'
import { toAge, toDay, toNumber } from '../../ui/format.ts'
import { Card, Figure, Page } from '../../ui/page.tsx'
import { Empty, Loaded } from '../../ui/states.tsx'
import { Unit } from '../../ui/time-chart.tsx'
import { Activity } from './activity.tsx'
import { CreditsFigure } from './credits-figure.tsx'
import { kindNames } from './scan-table.tsx'
import { sumDays, toDays, toTotal } from './usage-sums.ts'
import { RejectedTable, UsageTable } from './usage-tables.tsx'

export function UsagePage() {
  const usage = useRead('getUsage', {}, { liveMs: 5000 })
  return (
    <Page
      title="Usage"
      about="Recent activity in your time zone, and the last 30 days in UTC. Every scan costs one credit; rejected requests are free."
    >
      <Loaded query={usage}>
        {(data) => (
          <>
            <Figures {...data} />
            <Activity />
            <Days days={data.days} />
            <div className="grid grid-cols-1 items-start gap-6 lg:grid-cols-2">
              <UsageTable caption="By kind" title="Kind" rows={sumDays(data.days, ({ kind }) => kindNames[kind])} />
              <UsageTable caption="By key" title="Key" rows={sumDays(data.days, toKeyName)} />
            </div>
            <RejectedTable rejections={data.refusals} />
          </>
        )}
      </Loaded>
    </Page>
  )
}

function Figures({ runs_out_at, days, refusals, ...credits }: Usage) {
  return (
    <div className="grid grid-cols-2 gap-3 sm:gap-4 xl:grid-cols-4">
      <CreditsFigure {...credits} />
      <Figure
        label="Credits run out"
        value={runs_out_at === null ? 'Not in this period' : toAge(runs_out_at)}
        note={
          runs_out_at === null
            ? `renewed on ${toDay(credits.period_end)}`
            : `on ${toDay(runs_out_at)}, at the rate of the last 7 days`
        }
      />
      <Figure label="Scans" value={toNumber(days.reduce((sum, row) => sum + toTotal(row), 0))} note="in 30 days" />
      <Figure
        label="Rejected requests"
        value={toNumber(refusals.reduce((sum, { count }) => sum + count, 0))}
        note="in 30 days"
      />
    </div>
  )
}

function Days({ days }: Pick<Usage, 'days'>) {
  const [params, setParams] = useSearchParams()
  const keys = [...new Set(days.map(toKeyName))].sort()
  const selected = days.filter(
    (row) =>
      (params.kind === undefined || row.kind === params.kind) &&
      (params.key === undefined || toKeyName(row) === params.key),
  )
  return (
    <Card title="Scans by day" actions={<Unit>per day</Unit>}>
      <div className="mb-4 grid max-w-md grid-cols-2 gap-3">
        <SelectField
          label="Kind"
          value={params.kind ?? ''}
          options={[['', 'All'], ...Object.entries(kindNames)]}
          onText={(kind) => setParams({ kind })}
        />
        <SelectField
          label="Key"
          value={params.key ?? ''}
          options={[['', 'All'], ...keys.map((name): [string, string] => [name, name])]}
          onText={(key) => setParams({ key })}
        />
      </div>
      {selected.length === 0 ? (
        <Empty title="No scans">
          {days.length === 0 ? 'This chart shows the scans of each day.' : 'Select another kind or key.'}
        </Empty>
      ) : (
        <DailyScans title="Scans by day and verdict" days={toDays(selected, new Date())} />
      )}
    </Card>
  )
}

const toKeyName = ({ key_name }: { key_name: string | null }) => key_name ?? 'Unknown key'

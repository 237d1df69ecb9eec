import type { Usage } from '@assay/contract/admin'
import { useRead } from '../../api/hooks.ts'
import { useAddress } from '../../api/use-address.ts'
import { Meter, StackedBars } from '../../ui/charts.tsx'
import { Empty, Reading } from '../../ui/feedback.tsx'
import { SelectField } from '../../ui/field.tsx'
import { isUnlimited, toAge, toDay, toNumber, toShortDay } from '../../ui/format.ts'
import { Card, Figure, Page } from '../../ui/page.tsx'
import { kindNames } from './scan-table.tsx'
import { sumDays, toDays, toTotal } from './usage-sums.ts'
import { RefusalTable, UsageTable } from './usage-tables.tsx'

/** Where the credits go. */
export function UsagePage() {
  const usage = useRead('getUsage', {}, { liveMs: 5000 })
  return (
    <Page title="Usage" about="The last 30 days, by days of UTC. Every scan costs one credit; refusals cost nothing.">
      <Reading of={usage}>
        {(data) => (
          <>
            <Figures {...data} />
            <Days days={data.days} />
            <div className="grid grid-cols-1 items-start gap-6 lg:grid-cols-2">
              <UsageTable caption="By kind" title="Kind" rows={sumDays(data.days, ({ kind }) => kindNames[kind])} />
              <UsageTable caption="By key" title="Key" rows={sumDays(data.days, toKeyName)} />
            </div>
            <RefusalTable refusals={data.refusals} />
          </>
        )}
      </Reading>
    </Page>
  )
}

function Figures({ credit_limit, credit_remaining, period_end, runs_out_at, days, refusals }: Usage) {
  const isFree = isUnlimited(credit_limit)
  return (
    <div className="grid grid-cols-2 gap-3 sm:gap-4 xl:grid-cols-4">
      <Figure
        label="Credits left"
        value={isFree ? 'No limit' : toNumber(credit_remaining)}
        note={
          isFree ? (
            `${toNumber(credit_limit - credit_remaining)} used in this period`
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
        label="Credits run out"
        value={runs_out_at === null ? 'They last' : toAge(runs_out_at)}
        note={
          runs_out_at === null
            ? `until new ones come on ${toDay(period_end)}`
            : `On ${toDay(runs_out_at)}, at the pace of the last 7 days`
        }
      />
      <Figure label="Scans" value={toNumber(days.reduce((sum, row) => sum + toTotal(row), 0))} note="in 30 days" />
      <Figure
        label="Refused requests"
        value={toNumber(refusals.reduce((sum, { count }) => sum + count, 0))}
        note="in 30 days"
      />
    </div>
  )
}

function Days({ days }: Pick<Usage, 'days'>) {
  const [address, setAddress] = useAddress()
  const keys = [...new Set(days.map(toKeyName))].sort()
  const chosen = days.filter(
    (row) =>
      (address.kind === undefined || row.kind === address.kind) &&
      (address.key === undefined || toKeyName(row) === address.key),
  )
  return (
    <Card title="Scans by day">
      <div className="mb-4 grid max-w-md grid-cols-2 gap-3">
        <SelectField
          label="Kind"
          value={address.kind ?? ''}
          options={[['', 'All'], ...Object.entries(kindNames)]}
          onText={(kind) => setAddress({ kind })}
        />
        <SelectField
          label="Key"
          value={address.key ?? ''}
          options={[['', 'All'], ...keys.map((name): [string, string] => [name, name])]}
          onText={(key) => setAddress({ key })}
        />
      </div>
      {chosen.length === 0 ? (
        <Empty title="No scans">
          {days.length === 0 ? 'Every day gets a bar here.' : 'Choose another kind or key.'}
        </Empty>
      ) : (
        <StackedBars
          caption="Scans by day and verdict"
          bars={toDays(chosen, new Date()).map(({ day, ...counts }) => ({ label: toShortDay(day), ...counts }))}
        />
      )}
    </Card>
  )
}

const toKeyName = ({ key_name }: { key_name: string | null }) => key_name ?? 'Unknown key'

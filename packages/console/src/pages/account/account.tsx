import type { AccountView } from '@assay/contract/admin'
import { Link } from '@tanstack/react-router'
import { useRead, useSession } from '../../api/hooks.ts'
import { ThemeSwitch } from '../../shell/theme-switch.tsx'
import { Badge } from '../../ui/badge.tsx'
import { Meter } from '../../ui/charts.tsx'
import { isUnlimited, noLimit, toDateTime, toDay, toNumber, toRate } from '../../ui/format.ts'
import { Card, Facts, Page } from '../../ui/page.tsx'
import { Loaded } from '../../ui/states.tsx'
import { DownloadsCard } from '../downloads/downloads-card.tsx'
import { MembersCard } from './account-members.tsx'
import { Notices } from './notices.tsx'

export function AccountPage() {
  const account = useRead('getAccount')
  const { data: session } = useSession()
  const isOwner = session?.account?.role === 'owner'
  const isSuspended = session?.account?.suspended_at != null
  return (
    <Page title="Account" about="The operator of this service sets the plan and the limits.">
      {isOwner && !isSuspended && <Notices />}
      <div className="grid grid-cols-1 items-start gap-6 lg:grid-cols-2">
        <Card title="Plan and limits">
          <Loaded query={account}>{(data) => <Plan {...data} />}</Loaded>
        </Card>
        <Card title="Appearance and sign-in">
          <div className="flex flex-col gap-4">
            <p className="text-soft">Theme of the console in this browser.</p>
            <div className="max-w-72">
              <ThemeSwitch />
            </div>
            <p className="text-soft">
              Manage your password, authenticator app and sessions on the page{' '}
              <Link to="/you" className="font-medium text-brand hover:underline">
                You
              </Link>
              .
            </p>
          </div>
        </Card>
      </div>
      {isOwner && !isSuspended && <DownloadsCard />}
      {!isSuspended && <MembersCard canManage={isOwner} ownId={session?.member.id} />}
    </Page>
  )
}

function Plan(account: AccountView) {
  const { credit_limit: limit, credit_remaining: left } = account
  return (
    <Facts
      rows={[
        [
          'Name',
          <span key="name" className="font-medium break-words">
            {account.name}
          </span>,
        ],
        [
          'Plan',
          <span key="plan" className="flex gap-2">
            {account.plan} {account.suspended_at !== null && <Badge tone="threat">suspended</Badge>}
          </span>,
        ],
        [
          'Credits',
          isUnlimited(limit) ? (
            noLimit
          ) : (
            <span key="credits" className="flex flex-col gap-1.5">
              {toNumber(left)} of {toNumber(limit)} left
              <Meter label="Credits left" value={left} max={limit} />
            </span>
          ),
        ],
        ...(account.suspended_reason === null
          ? []
          : [['Reason of the suspension', account.suspended_reason] as [string, string]]),
        ['Period', `${toDay(account.period_start)} to ${toDay(account.period_end)}`],
        ['Rate limit of each key', toRate(account.rate)],
        ...(account.account_rate === null
          ? []
          : [['Rate limit of all keys', toRate(account.account_rate)] as [string, string]]),
        ...(account.max_keys === null
          ? []
          : [['API keys', `At most ${toNumber(account.max_keys)}`] as [string, string]]),
        ['Suggestive images', account.flags_sexy ? 'Threat' : 'Clean'],
        ['Download hosts', account.download_hosts === null ? 'Any public host' : account.download_hosts.join(', ')],
        ['Created', toDateTime(account.created_at)],
        ...(account.expires_at === null ? [] : [['Expires', toDateTime(account.expires_at)] as [string, string]]),
        [
          'ID',
          <code key="id" className="font-mono text-xs break-all">
            {account.id}
          </code>,
        ],
      ]}
    />
  )
}

import { type AccountView, mayUse } from '@assay/contract/admin'
import { Link } from '@tanstack/react-router'
import { useRead, useSession } from '../../api/hooks.ts'
import { ThemeSwitch } from '../../shell/theme-switch.tsx'
import { Badge } from '../../ui/badge.tsx'
import { Meter } from '../../ui/charts.tsx'
import { Reading } from '../../ui/feedback.tsx'
import { isUnlimited, toDateTime, toDay, toNumber } from '../../ui/format.ts'
import { Card, Facts, Page } from '../../ui/page.tsx'
import { MembersCard } from './account-members.tsx'

/** The account itself: what it may do, and who holds it. */
export function AccountPage() {
  const account = useRead('getAccount')
  const { data: session } = useSession()
  const who = session && { role: session.member.role, holdsAccount: session.account !== null }
  return (
    <Page title="Account" about="Its plan and limits are set by the operator of this service.">
      <div className="grid grid-cols-1 items-start gap-6 lg:grid-cols-2">
        <Card title="Plan and limits">
          <Reading of={account}>{(data) => <Plan {...data} />}</Reading>
        </Card>
        <Card title="Look and sign-in">
          <div className="flex flex-col gap-4">
            <p className="text-soft">How the console looks in this browser.</p>
            <div className="max-w-72">
              <ThemeSwitch />
            </div>
            <p className="text-soft">
              Your password, authenticator app and sessions are at{' '}
              <Link to="/you" className="font-medium text-brand hover:underline">
                You
              </Link>
              .
            </p>
          </div>
        </Card>
      </div>
      <MembersCard canManage={mayUse('owner', who ?? undefined)} ownId={session?.member.id} />
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
            'No limit'
          ) : (
            <span key="credits" className="flex flex-col gap-1.5">
              {toNumber(left)} of {toNumber(limit)} left
              <Meter label="Credits left" value={left} max={limit} />
            </span>
          ),
        ],
        ['Period', `${toDay(account.period_start)} to ${toDay(account.period_end)}`],
        ['Rate', toRate(account.rate)],
        ['Sexy images', account.flags_sexy ? 'are threats' : 'are called clean'],
        ['Downloads from', account.download_hosts === null ? 'any public host' : account.download_hosts.join(', ')],
        ['Since', toDateTime(account.created_at)],
        ...(account.expires_at === null ? [] : [['Ends', toDateTime(account.expires_at)] as [string, string]]),
        [
          'Id',
          <code key="id" className="font-mono text-xs break-all">
            {account.id}
          </code>,
        ],
      ]}
    />
  )
}

/** Such as 600/1m. */
function toRate(rate: string): string {
  const [requests = '', window = ''] = rate.split('/')
  if (isUnlimited(Number(requests))) return 'No limit'
  const count = Number.parseInt(window, 10)
  const unit = units[window.at(-1) ?? ''] ?? ''
  return `${toNumber(Number(requests))} requests in ${count} ${unit}${count === 1 ? '' : 's'}`
}

const units: Record<string, string> = { s: 'second', m: 'minute', h: 'hour', d: 'day' }

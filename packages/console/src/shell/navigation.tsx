import type { Session } from '@assay/contract/admin'
import { Link, useLocation } from '@tanstack/react-router'
import { useEffect, useRef } from 'react'

type PageLink = { path: string; label: string; icon: IconName; isForOwners?: boolean }

/** Pages for owners and members of an account. */
const accountPages: PageLink[] = [
  { path: '/', label: 'Overview', icon: 'overview' },
  { path: '/scan', label: 'Scan', icon: 'scan' },
  { path: '/history', label: 'History', icon: 'history' },
  { path: '/revisions', label: 'Revisions', icon: 'revisions' },
  { path: '/usage', label: 'Usage', icon: 'usage' },
  { path: '/keys', label: 'API keys', icon: 'keys' },
  { path: '/webhooks', label: 'Webhooks', icon: 'webhooks' },
  { path: '/alerts', label: 'Alerts', icon: 'alerts', isForOwners: true },
  { path: '/account', label: 'Account', icon: 'account' },
]

/** Pages for operators. */
const operatorPages: PageLink[] = [
  { path: '/operator/status', label: 'Status', icon: 'status' },
  { path: '/operator/accounts', label: 'Accounts', icon: 'accounts' },
  { path: '/operator/plans', label: 'Plans', icon: 'plans' },
  { path: '/operator/operators', label: 'Operators', icon: 'account' },
  { path: '/operator/jobs', label: 'Jobs', icon: 'jobs' },
  { path: '/operator/deliveries', label: 'Deliveries', icon: 'deliveries' },
  { path: '/operator/alerts', label: 'Alerts', icon: 'alerts' },
  { path: '/operator/signatures', label: 'Signatures', icon: 'signatures' },
  { path: '/operator/lists', label: 'Allow and block', icon: 'lists' },
  { path: '/operator/hash-lists', label: 'Hash lists', icon: 'hashes' },
  { path: '/operator/audit', label: 'Audit log', icon: 'audit' },
  { path: '/operator/system', label: 'System', icon: 'system' },
]

/** Links to the pages that the role of the user permits. */
export function Navigation({ session }: { session: Session }) {
  const links = useShownPage()
  return (
    <nav
      ref={links}
      aria-label="Pages"
      className="flex min-h-0 flex-1 flex-col gap-4 p-3 max-lg:grid max-sm:grid-cols-1 sm:max-lg:grid-cols-2 lg:overflow-y-auto lg:pt-1"
    >
      {session.account !== null && (
        <PageLinks
          title={session.account.name}
          pages={accountPages.filter(
            ({ path, isForOwners }) =>
              (session.account?.suspended_at === null || path === '/account') &&
              (isForOwners !== true || session.account?.role === 'owner'),
          )}
        />
      )}
      {session.member.role === 'operator' && <PageLinks title="Operator" pages={operatorPages} />}
      <a href="/reference" className={`${row} text-soft hover:bg-sunk hover:text-ink`}>
        <Icon name="reference" />
        API reference
      </a>
    </nav>
  )
}

/** Scrolls the list so that the link of the page is in view: on a low screen, operators have more pages than fit. */
function useShownPage() {
  const list = useRef<HTMLElement>(null)
  const { pathname } = useLocation()
  // biome-ignore lint/correctness/useExhaustiveDependencies: another page has another link
  useEffect(() => {
    list.current?.querySelector('[aria-current="page"]')?.scrollIntoView({ block: 'nearest' })
  }, [pathname])
  return list
}

const row = 'flex items-center gap-2.5 rounded-lg px-3 py-1'

function PageLinks({ title, pages }: { title: string; pages: PageLink[] }) {
  return (
    <div className="flex min-w-0 flex-col gap-px">
      <p className="truncate px-3 pb-1 text-xs font-medium text-faint" title={title}>
        {title}
      </p>
      {pages.map(({ path, label, icon }) => (
        <Link
          key={path}
          to={path}
          activeOptions={{ exact: path === '/', includeSearch: false }}
          className={row}
          activeProps={{ className: 'bg-brand-soft text-brand font-medium', 'aria-current': 'page' }}
          inactiveProps={{ className: 'text-soft hover:bg-sunk hover:text-ink' }}
        >
          <Icon name={icon} />
          {label}
        </Link>
      ))}
    </div>
  )
}

/** SVG paths of the icons in a view box of 20 by 20. */
const iconPaths = {
  overview: 'M3 3h6v6H3zM11 3h6v4h-6zM11 9h6v8h-6zM3 11h6v6H3z',
  scan: 'M3 7V4a1 1 0 0 1 1-1h3M13 3h3a1 1 0 0 1 1 1v3M17 13v3a1 1 0 0 1-1 1h-3M7 17H4a1 1 0 0 1-1-1v-3M3 10h14',
  history: 'M3.5 10a6.5 6.5 0 1 0 2-4.7M3.5 3v3h3M10 6.5V10l2.5 1.5',
  revisions: 'M4 8a6 6 0 0 1 11-2M15 3v3h-3M16 12a6 6 0 0 1-11 2M5 17v-3h3',
  hashes: 'M7.5 3 6 17M14 3l-1.5 14M3.5 7.5h13M3 12.5h13',
  usage: 'M3 17h14M5.5 14v-4M10 14V5M14.5 14V8',
  keys: 'M10.2 9.8 17 3M14 6l2 2M12.5 13.5a4 4 0 1 1-8 0 4 4 0 0 1 8 0z',
  webhooks: 'M3 10h9M9 6.5l3.5 3.5L9 13.5M12 3h4a1 1 0 0 1 1 1v12a1 1 0 0 1-1 1h-4',
  account: 'M13 6.5a3 3 0 1 1-6 0 3 3 0 0 1 6 0zM4 17c.5-3.3 2.8-5 6-5s5.5 1.7 6 5',
  status: 'M2.5 10h3.5l2-5.5 4 11 2-5.5h3.5',
  accounts:
    'M10.5 6.5a3 3 0 1 1-6 0 3 3 0 0 1 6 0zM2 16.5c.4-3 2.4-4.5 5.5-4.5s5.1 1.5 5.5 4.5M13 3.8a3 3 0 0 1 0 5.4M15 12.4c1.8.6 2.8 2 3 4.1',
  plans: 'M10 3 3 6.5l7 3.5 7-3.5zM3 10l7 3.5 7-3.5M3 13.5 10 17l7-3.5',
  jobs: 'M7 5h10M7 10h10M7 15h10M3 5h.5M3 10h.5M3 15h.5',
  deliveries: 'M17 3 9 11M17 3l-5 14-3-6-6-3z',
  signatures: 'M10 2.5 4 5v4.5c0 3.8 2.4 6.5 6 8 3.6-1.5 6-4.2 6-8V5zM7.5 10l1.8 1.8L13 8',
  lists: 'M3 5.5l1.5 1.5L7 4M3 13l4 4M7 13l-4 4M10 6h7M10 15h7',
  audit: 'M5 3h7l3 3v11H5zM12 3v3h3M7.5 9.5h5M7.5 12.5h5',
  system: 'M3 4h14v5H3zM3 11h14v5H3zM6 6.5h.5M6 13.5h.5M10 6.5h4M10 13.5h4',
  alerts: 'M5 13.5V9a5 5 0 0 1 10 0v4.5l1.5 1.5h-13zM8 17.5h4',
  reference: 'M4 4.5c2.2-.8 4.2-.6 6 .8 1.8-1.4 3.8-1.6 6-.8V16c-2.2-.8-4.2-.6-6 .8-1.8-1.4-3.8-1.6-6-.8zM10 5.3v11.5',
}

type IconName = keyof typeof iconPaths

function Icon({ name }: { name: IconName }) {
  return (
    <svg viewBox="0 0 20 20" className="size-4.5 shrink-0" aria-hidden="true">
      <path
        d={iconPaths[name]}
        fill="none"
        stroke="currentColor"
        strokeWidth="1.5"
        strokeLinecap="round"
        strokeLinejoin="round"
      />
    </svg>
  )
}

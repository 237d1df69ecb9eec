import type { Session } from '@assay/contract/admin'
import {
  createRootRoute,
  createRoute,
  createRouter,
  lazyRouteComponent,
  Navigate,
  Outlet,
  useLocation,
  useRouter,
} from '@tanstack/react-router'
import { useEffect, useRef } from 'react'
import { useSession } from './api/hooks.ts'
import { EntryFrame } from './pages/entry/entry-frame.tsx'
import { SignInPage } from './pages/entry/sign-in.tsx'
import { WelcomePage } from './pages/entry/welcome.tsx'
import { toOwner } from './shell/session-ended.tsx'
import { Shell } from './shell/shell.tsx'
import { Button } from './ui/button.tsx'
import { ErrorMessage } from './ui/states.tsx'

const keepSearch = (search: Record<string, unknown>) => search as Record<string, string | undefined>

const root = createRootRoute({ component: Outlet })
const signIn = createRoute({
  getParentRoute: () => root,
  path: '/sign-in',
  validateSearch: keepSearch,
  component: SignInPage,
})
const welcome = createRoute({ getParentRoute: () => root, path: '/welcome', component: WelcomePage })
const sso = createRoute({
  getParentRoute: () => root,
  path: '/sso',
  validateSearch: keepSearch,
  component: lazyRouteComponent(() => import('./pages/entry/sso.tsx'), 'SsoPage'),
})
const signedIn = createRoute({ getParentRoute: () => root, id: 'signed-in', component: SignedIn })

/** All pages except sign-in, single sign-on and welcome require a session. When it ends, the page stays below a dialog. */
function SignedIn() {
  const session = useSession()
  const { pathname } = useLocation()
  const last = useRef<Session>(undefined)
  if (session.data) last.current = session.data
  if (session.data === null) {
    if (last.current !== undefined) return <Shell key={toOwner(last.current)} session={last.current} hasEnded />
    return <Redirect to="/sign-in" back={location.pathname + location.search} />
  }
  if (session.data === undefined) {
    if (session.error === null) return null
    return (
      <EntryFrame title="Cannot reach the service">
        <ErrorMessage error={session.error} />
        <Button variant="primary" className="mt-4 w-full" isBusy={session.isFetching} onClick={() => session.refetch()}>
          Try again
        </Button>
      </EntryFrame>
    )
  }
  if (session.data.account === null && pathname === '/') return <Redirect to="/operator/status" />
  if (session.data.account?.suspended_at != null && accountPaths.has(pathname)) return <Redirect to="/account" />
  return <Shell key={toOwner(session.data)} session={session.data} />
}

/** Pages that a suspended account cannot use; the page Account shows the reason. */
const accountPaths = new Set(['/', '/scan', '/history', '/revisions', '/usage', '/keys', '/webhooks', '/alerts'])

/** Navigates once. The Navigate component of the router would navigate again whenever the address changes. */
function Redirect({ to, back }: { to: string; back?: string }) {
  const router = useRouter()
  const first = useRef({ to, search: { back }, replace: true })
  useEffect(() => {
    void router.navigate(first.current)
  }, [router])
  return null
}

/** A page, loaded when it is opened. Its query parameters hold its filters. */
const page = (path: string, load: () => Promise<Record<string, unknown>>, name: string) =>
  createRoute({
    getParentRoute: () => signedIn,
    path,
    validateSearch: keepSearch,
    component: lazyRouteComponent(load as () => Promise<Record<string, () => React.JSX.Element>>, name),
  })

const pages = [
  page('/', () => import('./pages/account/home.tsx'), 'HomePage'),
  page('/scan', () => import('./pages/account/scan.tsx'), 'ScanPage'),
  page('/history', () => import('./pages/account/history.tsx'), 'HistoryPage'),
  page('/revisions', () => import('./pages/account/revisions.tsx'), 'RevisionsPage'),
  page('/usage', () => import('./pages/account/usage.tsx'), 'UsagePage'),
  page('/keys', () => import('./pages/account/keys.tsx'), 'KeysPage'),
  page('/webhooks', () => import('./pages/account/webhooks.tsx'), 'WebhooksPage'),
  page('/alerts', () => import('./pages/alerts/alerts.tsx'), 'AccountAlertsPage'),
  page('/account', () => import('./pages/account/account.tsx'), 'AccountPage'),
  page('/you', () => import('./pages/account/you.tsx'), 'YouPage'),
  page('/operator/status', () => import('./pages/operator/status.tsx'), 'StatusPage'),
  page('/operator/accounts', () => import('./pages/operator/accounts.tsx'), 'AccountsPage'),
  page('/operator/operators', () => import('./pages/operator/operators.tsx'), 'OperatorsPage'),
  page('/operator/plans', () => import('./pages/operator/plans.tsx'), 'PlansPage'),
  page('/operator/jobs', () => import('./pages/operator/jobs.tsx'), 'JobsPage'),
  page('/operator/deliveries', () => import('./pages/operator/deliveries.tsx'), 'DeliveriesPage'),
  page('/operator/alerts', () => import('./pages/alerts/alerts.tsx'), 'OperatorAlertsPage'),
  page('/operator/signatures', () => import('./pages/operator/signatures.tsx'), 'SignaturesPage'),
  page('/operator/lists', () => import('./pages/operator/lists.tsx'), 'ListsPage'),
  page('/operator/hash-lists', () => import('./pages/operator/hash-lists.tsx'), 'HashListsPage'),
  page('/operator/audit', () => import('./pages/operator/audit.tsx'), 'AuditPage'),
  page('/operator/system', () => import('./pages/operator/system.tsx'), 'SystemPage'),
]

export const makeRouter = () =>
  createRouter({
    routeTree: root.addChildren([signIn, welcome, sso, signedIn.addChildren(pages)]),
    basepath: '/console',
    defaultPreload: 'intent',
    defaultNotFoundComponent: () => <Navigate to="/" />,
  })

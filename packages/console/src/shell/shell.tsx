import type { Session } from '@assay/contract/admin'
import { useMutation, useQueryClient } from '@tanstack/react-query'
import { Link, Outlet, useLocation, useNavigate } from '@tanstack/react-router'
import { useEffect, useRef, useState } from 'react'
import { type ApiError, call } from '../api/call.ts'
import { useSignOut } from '../api/use-sign-out.ts'
import { Button } from '../ui/button.tsx'
import { SelectField } from '../ui/field.tsx'
import { ErrorMessage } from '../ui/states.tsx'
import { Navigation } from './navigation.tsx'
import { SessionEnded } from './session-ended.tsx'
import { ThemeSwitch } from './theme-switch.tsx'

/** The layout around every page: navigation, theme, and the signed-in user. */
export function Shell({ session, hasEnded = false }: { session: Session; hasEnded?: boolean }) {
  const { isOpen, setOpen, button } = useMenu()
  return (
    <div className="min-h-dvh lg:grid lg:grid-cols-[15rem_1fr]">
      <a
        href="#content"
        className="sr-only focus:not-sr-only focus:fixed focus:z-20 focus:m-2 focus:rounded-lg focus:bg-panel focus:p-2"
      >
        Skip to content
      </a>
      <header className="sticky top-0 z-10 flex items-center justify-between border-b border-line bg-panel px-4 py-2.5 lg:hidden">
        <Brand session={session} />
        <button
          ref={button}
          type="button"
          aria-expanded={isOpen}
          aria-controls="menu"
          onClick={() => setOpen(!isOpen)}
          className="rounded-lg border border-line px-3 py-1.5 font-medium aria-expanded:bg-sunk"
        >
          Menu
        </button>
      </header>
      <aside
        id="menu"
        aria-label="Menu"
        className={`${isOpen ? 'flex' : 'hidden'} flex-col border-line bg-panel max-lg:border-b lg:sticky lg:top-0 lg:flex lg:h-dvh lg:border-r`}
      >
        <div className="hidden px-6 pt-4 pb-3 lg:block">
          <Brand session={session} />
        </div>
        <Navigation session={session} />
        <div className="flex flex-col gap-2 border-t border-line p-3">
          <ThemeSwitch />
          {session.accounts.length > 1 && <AccountSwitch session={session} />}
          <UserMenu session={session} />
        </div>
      </aside>
      <main id="content" tabIndex={-1} className="min-w-0 outline-none">
        {session.test_mode && (
          <p className="bg-error-soft px-4 py-2 text-center font-medium text-error">
            Test mode: nothing is scanned, and verdicts come from a table.
          </p>
        )}
        {session.account?.suspended_at != null && (
          <p role="status" className="bg-threat-soft px-4 py-2 text-center font-medium text-threat">
            This account is suspended{session.account.suspended_reason && `: ${session.account.suspended_reason}`}
          </p>
        )}
        <Outlet />
      </main>
      {hasEnded && <SessionEnded ended={session} />}
    </div>
  )
}

/** State of the menu on small screens, where navigation and Escape close it. */
function useMenu() {
  const [isOpen, setOpen] = useState(false)
  const button = useRef<HTMLButtonElement>(null)
  const { pathname } = useLocation()
  // biome-ignore lint/correctness/useExhaustiveDependencies: a change of the path closes the menu
  useEffect(() => setOpen(false), [pathname])
  useEffect(() => {
    if (!isOpen) return
    const onKey = (event: KeyboardEvent) => {
      if (event.key !== 'Escape') return
      setOpen(false)
      button.current?.focus()
    }
    document.addEventListener('keydown', onKey)
    return () => document.removeEventListener('keydown', onKey)
  }, [isOpen])
  return { isOpen, setOpen, button }
}

function Brand({ session }: { session: Session }) {
  return (
    <span className="flex min-w-0 items-center gap-2.5">
      <img src="/console/icon.svg" alt="" className="size-7" />
      <span className="text-base font-semibold tracking-tight">Assay</span>
      <span className="truncate rounded bg-sunk px-1.5 text-xs leading-5 text-soft">{session.region}</span>
    </span>
  )
}

/** Selects the account that the pages show, for people who belong to several. */
function AccountSwitch({ session }: { session: Session }) {
  const client = useQueryClient()
  const navigate = useNavigate()
  const choose = useMutation<void, ApiError, string>({
    mutationFn: async (account_id) => {
      await call('chooseAccount', { body: { account_id } })
    },
    onSuccess: async () => {
      await navigate({ to: '/account' })
      // Data of the other account must not stay on the pages.
      await client.resetQueries()
    },
  })
  return (
    <>
      <SelectField
        label="Account"
        value={session.account?.id ?? ''}
        options={session.accounts.map(({ id, name }) => [id, name])}
        onText={(id) => choose.mutate(id)}
      />
      <ErrorMessage error={choose.error} />
    </>
  )
}

function UserMenu({ session }: { session: Session }) {
  const signOut = useSignOut('signOut')
  return (
    <div className="flex flex-col gap-2">
      <div className="flex items-center justify-between gap-1">
        <Link
          to="/you"
          title={session.member.email}
          className="min-w-0 flex-1 rounded-lg px-2 py-1 leading-5 hover:bg-sunk"
          activeProps={{ className: 'bg-brand-soft', 'aria-current': 'page' }}
        >
          <span className="block truncate font-medium">{session.member.name}</span>
          <span className="block truncate text-xs text-soft">{session.member.email}</span>
        </Link>
        <Button variant="ghost" isSmall onClick={() => signOut.mutate()} isBusy={signOut.isPending}>
          Sign out
        </Button>
      </div>
      <ErrorMessage error={signOut.error} />
    </div>
  )
}

import type { Session } from '@assay/contract/admin'
import { Link, Outlet, useLocation } from '@tanstack/react-router'
import { useEffect, useState } from 'react'
import { accountPlaces, operatorPlaces, type Place } from './nav.ts'
import { ThemeSwitch } from './theme-switch.tsx'
import { UserMenu } from './user-menu.tsx'

/** The frame around every page: where one can go, who one is, and how it looks. */
export function Shell({ session }: { session: Session }) {
  const [isOpen, setOpen] = useState(false)
  const { pathname } = useLocation()
  // biome-ignore lint/correctness/useExhaustiveDependencies: going somewhere closes the menu
  useEffect(() => setOpen(false), [pathname])
  return (
    <div className="min-h-dvh lg:grid lg:grid-cols-[15rem_1fr]">
      <a
        href="#content"
        className="sr-only focus:not-sr-only focus:absolute focus:m-2 focus:rounded-lg focus:bg-panel focus:p-2"
      >
        Skip to the page
      </a>
      <header className="flex items-center justify-between border-b border-line bg-panel px-4 py-3 lg:hidden">
        <Brand session={session} />
        <button
          type="button"
          aria-expanded={isOpen}
          aria-controls="places"
          onClick={() => setOpen(!isOpen)}
          className="rounded-lg border border-line px-3 py-1.5 font-medium"
        >
          Menu
        </button>
      </header>
      <aside
        id="places"
        className={`${isOpen ? 'flex' : 'hidden'} flex-col gap-6 border-line bg-panel px-3 py-4 lg:sticky lg:top-0 lg:flex lg:h-dvh lg:overflow-y-auto lg:border-r`}
      >
        <div className="hidden px-3 pt-1 lg:block">
          <Brand session={session} />
        </div>
        <nav aria-label="Pages" className="flex flex-col gap-6">
          {session.account !== null && <Places title={session.account.name} places={accountPlaces} />}
          {session.member.role === 'operator' && <Places title="Operator" places={operatorPlaces} />}
          <div className="flex flex-col gap-0.5">
            <a href="/reference" className="rounded-lg px-3 py-1.5 text-soft hover:bg-sunk hover:text-ink">
              API reference ↗
            </a>
          </div>
        </nav>
        <div className="mt-auto flex flex-col gap-3 px-1">
          <ThemeSwitch />
          <UserMenu session={session} />
        </div>
      </aside>
      <main id="content" className="min-w-0">
        {session.test_mode && (
          <p className="bg-error-soft px-4 py-2 text-center font-medium text-error">
            Test mode: nothing is scanned, verdicts come from a table.
          </p>
        )}
        <Outlet />
      </main>
    </div>
  )
}

function Brand({ session }: { session: Session }) {
  return (
    <span className="flex items-center gap-2.5">
      <img src="/console/icon.svg" alt="" className="size-7" />
      <span className="text-base font-semibold tracking-tight">Assay</span>
      <span className="rounded bg-sunk px-1.5 py-0.5 text-xs text-soft">{session.region}</span>
    </span>
  )
}

function Places({ title, places }: { title: string; places: Place[] }) {
  return (
    <div className="flex flex-col gap-0.5">
      <p className="truncate px-3 pb-1 text-xs font-medium text-faint">{title}</p>
      {places.map(({ path, label }) => (
        <Link
          key={path}
          to={path}
          activeOptions={{ exact: path === '/' }}
          className="rounded-lg px-3 py-1.5"
          activeProps={{ className: 'bg-brand-soft text-brand font-medium', 'aria-current': 'page' }}
          inactiveProps={{ className: 'text-soft hover:bg-sunk hover:text-ink' }}
        >
          {label}
        </Link>
      ))}
    </div>
  )
}

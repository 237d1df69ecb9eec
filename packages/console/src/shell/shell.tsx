import type { Session } from '@assay/contract/admin'
import { Link, Outlet, useLocation } from '@tanstack/react-router'
import { useEffect, useRef, useState } from 'react'
import { Icon } from './icon.tsx'
import { accountPlaces, operatorPlaces, type Place } from './nav.ts'
import { ThemeSwitch } from './theme-switch.tsx'
import { UserMenu } from './user-menu.tsx'

/** The frame around every page: where one can go, who one is, and how it looks. */
export function Shell({ session }: { session: Session }) {
  const { isOpen, setOpen, button } = useMenu()
  return (
    <div className="min-h-dvh lg:grid lg:grid-cols-[15rem_1fr]">
      <a
        href="#content"
        className="sr-only focus:not-sr-only focus:fixed focus:z-20 focus:m-2 focus:rounded-lg focus:bg-panel focus:p-2"
      >
        Skip to the page
      </a>
      <header className="sticky top-0 z-10 flex items-center justify-between border-b border-line bg-panel px-4 py-2.5 lg:hidden">
        <Brand session={session} />
        <button
          ref={button}
          type="button"
          aria-expanded={isOpen}
          aria-controls="places"
          onClick={() => setOpen(!isOpen)}
          className="rounded-lg border border-line px-3 py-1.5 font-medium aria-expanded:bg-sunk"
        >
          Menu
        </button>
      </header>
      <aside
        id="places"
        aria-label="Menu"
        className={`${isOpen ? 'flex' : 'hidden'} flex-col border-line bg-panel max-lg:border-b lg:sticky lg:top-0 lg:flex lg:h-dvh lg:border-r`}
      >
        <div className="hidden px-6 pt-4 pb-3 lg:block">
          <Brand session={session} />
        </div>
        <nav
          aria-label="Pages"
          className="flex min-h-0 flex-1 flex-col gap-4 p-3 max-lg:grid max-sm:grid-cols-1 sm:max-lg:grid-cols-2 lg:overflow-y-auto lg:pt-1"
        >
          {session.account !== null && <Places title={session.account.name} places={accountPlaces} />}
          {session.member.role === 'operator' && <Places title="Operator" places={operatorPlaces} />}
          <a href="/reference" className={`${row} text-soft hover:bg-sunk hover:text-ink`}>
            <Icon name="reference" />
            API reference
          </a>
        </nav>
        <div className="flex flex-col gap-2 border-t border-line p-3">
          <ThemeSwitch />
          <UserMenu session={session} />
        </div>
      </aside>
      <main id="content" tabIndex={-1} className="min-w-0 outline-none">
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

/** Where there is little room the pages are behind a button: going somewhere or Escape closes them again. */
function useMenu() {
  const [isOpen, setOpen] = useState(false)
  const button = useRef<HTMLButtonElement>(null)
  const { pathname } = useLocation()
  // biome-ignore lint/correctness/useExhaustiveDependencies: going somewhere closes the menu
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

const row = 'flex items-center gap-2.5 rounded-lg px-3 py-1'

function Places({ title, places }: { title: string; places: Place[] }) {
  return (
    <div className="flex min-w-0 flex-col gap-px">
      <p className="truncate px-3 pb-1 text-xs font-medium text-faint" title={title}>
        {title}
      </p>
      {places.map(({ path, label, icon }) => (
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

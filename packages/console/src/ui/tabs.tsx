import { type KeyboardEvent, type ReactNode, useId, useRef, useState } from 'react'

type Tab = { name: string; children: ReactNode }

/** Tabs; the arrow keys move between them. */
export function Tabs({ label, tabs }: { label: string; tabs: Tab[] }) {
  const [selected, setSelected] = useState(0)
  const list = useRef<HTMLDivElement>(null)
  const id = useId()
  const onKeyDown = (event: KeyboardEvent) => {
    const step = { ArrowRight: 1, ArrowLeft: -1 }[event.key]
    if (step === undefined) return
    const next = (selected + step + tabs.length) % tabs.length
    setSelected(next)
    list.current?.querySelectorAll<HTMLButtonElement>('[role="tab"]')[next]?.focus()
  }
  return (
    <div>
      <div ref={list} role="tablist" aria-label={label} className="mb-3 flex flex-wrap gap-1">
        {tabs.map(({ name }, n) => (
          <button
            key={name}
            type="button"
            role="tab"
            id={`${id}-${n}`}
            aria-selected={n === selected}
            aria-controls={`${id}-panel`}
            tabIndex={n === selected ? 0 : -1}
            onClick={() => setSelected(n)}
            onKeyDown={onKeyDown}
            className="rounded-lg px-3 py-1 text-soft hover:bg-sunk aria-selected:bg-brand-soft aria-selected:font-medium aria-selected:text-brand"
          >
            {name}
          </button>
        ))}
      </div>
      <div role="tabpanel" id={`${id}-panel`} aria-labelledby={`${id}-${selected}`}>
        {tabs[selected]?.children}
      </div>
    </div>
  )
}

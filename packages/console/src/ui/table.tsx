import { type ReactNode, type RefObject, useEffect, useRef, useState } from 'react'

export type Column<T> = {
  title: string
  cell: (row: T) => ReactNode
  /** Numbers stand to the right. */
  isNumber?: boolean
  /** Left out where there is little room. */
  isExtra?: boolean
  /** Buttons: they need no title in sight. */
  isActions?: boolean
}

/** On a small screen each row is a little list of its own; a table that is still too wide scrolls by itself. */
export function Table<T>({
  rows,
  columns,
  keyOf,
  onOpen,
  caption,
  title,
}: {
  rows: T[]
  columns: Column<T>[]
  keyOf: (row: T) => string
  onOpen?: (row: T) => void
  caption: string
  /** A heading in sight, where the page alone does not say what this is. */
  title?: string
}) {
  const frame = useRef<HTMLElement>(null)
  const isWide = useIsWide(frame)
  return (
    <section
      ref={frame}
      className="overflow-x-auto rounded-xl border border-line bg-panel"
      aria-label={caption}
      {...(isWide ? { tabIndex: 0 } : {})}
    >
      {title !== undefined && <h2 className="border-b border-line px-4 py-3 font-semibold">{title}</h2>}
      <table className="w-full border-collapse text-left max-md:block">
        <caption className="sr-only">{caption}</caption>
        <thead className="max-md:sr-only">
          <tr className="border-b border-line text-xs text-soft">
            {columns.map(({ title, isNumber, isExtra, isActions }) => (
              <th
                key={title}
                scope="col"
                className={`px-4 py-2.5 font-medium whitespace-nowrap ${toClass(isNumber, isExtra)}`}
              >
                <span className={isActions ? 'sr-only' : ''}>{title}</span>
              </th>
            ))}
          </tr>
        </thead>
        <tbody className="max-md:block">
          {rows.map((row) => (
            <tr
              key={keyOf(row)}
              className={`border-b border-line last:border-0 max-md:block max-md:py-2 ${onOpen === undefined ? '' : 'cursor-pointer hover:bg-sunk'}`}
              {...(onOpen === undefined ? {} : { onClick: () => onOpen(row) })}
            >
              {columns.map((column) => (
                <td
                  key={column.title}
                  data-title={column.title}
                  className={`px-4 py-2.5 align-middle ${toClass(column.isNumber, column.isExtra)} ${toPhoneClass(column)}`}
                >
                  <div className="min-w-0">{column.cell(row)}</div>
                </td>
              ))}
            </tr>
          ))}
        </tbody>
      </table>
    </section>
  )
}

/** What the keyboard opens a row with; the click goes on to the row. */
export function RowButton({ children }: { children: ReactNode }) {
  return (
    <button type="button" className="max-w-72 truncate text-left font-medium hover:underline">
      {children}
    </button>
  )
}

const toClass = (isNumber = false, isExtra = false) =>
  `${isNumber ? 'text-right tabular-nums' : ''} ${isExtra ? 'hidden md:table-cell' : ''}`

/** A line `title  value`; the first of a row stands without its title, as what the row is called. */
function toPhoneClass({ isExtra, isActions }: Pick<Column<never>, 'isExtra' | 'isActions'>): string {
  if (isExtra) return ''
  if (isActions) return 'md:text-right max-md:block max-md:py-1.5 max-md:has-[>div:empty]:hidden'
  return 'max-md:flex max-md:py-0.5 max-md:text-left max-md:has-[>div:empty]:hidden max-md:not-first:before:w-28 max-md:not-first:before:shrink-0 max-md:not-first:before:text-soft max-md:not-first:before:content-[attr(data-title)]'
}

/** What scrolls must be reachable by keyboard, and nothing else needs to be. */
function useIsWide(frame: RefObject<HTMLElement | null>): boolean {
  const [isWide, setWide] = useState(false)
  useEffect(() => {
    const shown = frame.current
    if (shown === null) return
    const observer = new ResizeObserver(() => setWide(shown.scrollWidth > shown.clientWidth))
    for (const part of [shown, ...shown.children]) observer.observe(part)
    return () => observer.disconnect()
  }, [frame])
  return isWide
}

/** To the page after this one. */
export function More({
  next,
  onMore,
  label = 'Older ones',
}: {
  next: string | null
  onMore: (cursor: string) => void
  label?: string
}) {
  if (next === null) return null
  return (
    <div className="text-center">
      <button
        type="button"
        onClick={() => onMore(next)}
        className="rounded-lg px-4 py-2 font-medium text-brand hover:bg-sunk"
      >
        {label}
      </button>
    </div>
  )
}

import { type ReactNode, type RefObject, useEffect, useLayoutEffect, useRef, useState } from 'react'

export type Column<T> = {
  title: string
  cell: (row: T) => ReactNode
  /** Numbers are aligned to the right. */
  isNumber?: boolean
  /** Hidden where the table is narrow, such as on a phone or beside the navigation of a small laptop. */
  isExtra?: boolean
  /** A column of buttons, whose title only screen readers announce. It stays in view while the rest scrolls. */
  isActions?: boolean
}

/**
 * A table. Its own width decides, not that of the screen: narrow tables lose their extra columns, then each row becomes a
 * list. A table that is still too wide scrolls below its actions.
 */
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
  /** A visible heading, for pages with several tables. */
  title?: string
}) {
  const frame = useRef<HTMLElement>(null)
  const isWide = useIsWide(frame)
  return (
    <section
      ref={frame}
      className="@container overflow-x-auto rounded-xl border border-line bg-panel"
      aria-label={caption}
      {...(isWide ? { tabIndex: 0 } : {})}
    >
      {title !== undefined && <h2 className="border-b border-line px-4 py-3 font-semibold">{title}</h2>}
      <table className="w-full border-collapse text-left @max-2xl:block">
        <caption className="sr-only">{caption}</caption>
        <thead className="@max-2xl:sr-only">
          <tr className="border-b border-line text-xs text-soft">
            {columns.map((column) => (
              <th
                key={column.title}
                scope="col"
                className={`px-4 py-2.5 font-medium whitespace-nowrap ${toClass(column)}`}
              >
                <span className={column.isActions ? 'sr-only' : ''}>{column.title}</span>
              </th>
            ))}
          </tr>
        </thead>
        <tbody className="@max-2xl:block">
          {rows.map((row) => (
            <tr
              key={keyOf(row)}
              className={`border-b border-line last:border-0 @max-2xl:block @max-2xl:py-2 ${onOpen === undefined ? '' : 'cursor-pointer hover:bg-sunk'}`}
              {...(onOpen === undefined ? {} : { onClick: () => onOpen(row) })}
            >
              {columns.map((column) => (
                <td
                  key={column.title}
                  data-title={column.title}
                  className={`px-4 py-2.5 align-middle ${toClass(column)} ${toListClass(column)}`}
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

/** The button in a row that opens it by keyboard. Its click event reaches the row. */
export function RowButton({ children }: { children: ReactNode }) {
  return (
    <button
      type="button"
      title={typeof children === 'string' ? children : undefined}
      className="max-w-72 truncate text-left font-medium hover:underline"
    >
      {children}
    </button>
  )
}

type Kind = Pick<Column<unknown>, 'isNumber' | 'isExtra' | 'isActions'>

const toClass = ({ isNumber, isExtra, isActions }: Kind) =>
  [
    isNumber && 'text-right tabular-nums',
    isExtra && 'hidden @4xl:table-cell',
    isActions && 'sticky right-0 bg-panel @2xl:text-right',
  ]
    .filter((name) => typeof name === 'string')
    .join(' ')

/** Shows a cell as `title value` where rows are lists. The first cell of a row is its heading and has no title. */
function toListClass({ isExtra, isActions }: Kind): string {
  if (isExtra) return ''
  if (isActions) return '@max-2xl:block @max-2xl:py-1.5 @max-2xl:has-[>div:empty]:hidden'
  return '@max-2xl:flex @max-2xl:py-0.5 @max-2xl:text-left @max-2xl:has-[>div:empty]:hidden @max-2xl:not-first:before:w-28 @max-2xl:not-first:before:shrink-0 @max-2xl:not-first:before:text-soft @max-2xl:not-first:before:content-[attr(data-title)]'
}

/** Whether the table scrolls and therefore must be focusable by keyboard. */
function useIsWide(frame: RefObject<HTMLElement | null>): boolean {
  const [isWide, setWide] = useState(false)
  // New rows are measured before they are shown; the observer comes a moment later.
  useLayoutEffect(() => {
    if (frame.current !== null) setWide(scrolls(frame.current))
  })
  useEffect(() => {
    const element = frame.current
    if (element === null) return
    const observer = new ResizeObserver(() => setWide(scrolls(element)))
    for (const part of [element, ...element.children]) observer.observe(part)
    return () => observer.disconnect()
  }, [frame])
  return isWide
}

const scrolls = ({ scrollWidth, clientWidth }: HTMLElement) => scrollWidth > clientWidth

import { type ReactNode, type RefObject, useEffect, useRef, useState } from 'react'

export type Column<T> = {
  title: string
  cell: (row: T) => ReactNode
  /** Numbers are aligned to the right. */
  isNumber?: boolean
  /** Hidden on small screens. */
  isExtra?: boolean
  /** A column of buttons, whose title only screen readers announce. */
  isActions?: boolean
}

/** A table. On small screens each row becomes a list; a table that is still too wide scrolls. */
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
                  className={`px-4 py-2.5 align-middle ${toClass(column.isNumber, column.isExtra)} ${toSmallScreenClass(column)}`}
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
    <button type="button" className="max-w-72 truncate text-left font-medium hover:underline">
      {children}
    </button>
  )
}

const toClass = (isNumber = false, isExtra = false) =>
  `${isNumber ? 'text-right tabular-nums' : ''} ${isExtra ? 'hidden md:table-cell' : ''}`

/** Shows a cell as `title value` on small screens. The first cell of a row is its heading and has no title. */
function toSmallScreenClass({ isExtra, isActions }: Pick<Column<never>, 'isExtra' | 'isActions'>): string {
  if (isExtra) return ''
  if (isActions) return 'md:text-right max-md:block max-md:py-1.5 max-md:has-[>div:empty]:hidden'
  return 'max-md:flex max-md:py-0.5 max-md:text-left max-md:has-[>div:empty]:hidden max-md:not-first:before:w-28 max-md:not-first:before:shrink-0 max-md:not-first:before:text-soft max-md:not-first:before:content-[attr(data-title)]'
}

/** Whether the table scrolls and therefore must be focusable by keyboard. */
function useIsWide(frame: RefObject<HTMLElement | null>): boolean {
  const [isWide, setWide] = useState(false)
  useEffect(() => {
    const element = frame.current
    if (element === null) return
    const observer = new ResizeObserver(() => setWide(element.scrollWidth > element.clientWidth))
    for (const part of [element, ...element.children]) observer.observe(part)
    return () => observer.disconnect()
  }, [frame])
  return isWide
}

import type { ReactNode } from 'react'

export type Column<T> = {
  title: string
  cell: (row: T) => ReactNode
  /** Numbers stand to the right. */
  isNumber?: boolean
  /** Left out where there is little room. */
  isExtra?: boolean
}

/** Scrolls by itself when it is wider than the screen, and can be reached by keyboard for that. */
export function Table<T>({
  rows,
  columns,
  keyOf,
  onOpen,
  caption,
}: {
  rows: T[]
  columns: Column<T>[]
  keyOf: (row: T) => string
  onOpen?: (row: T) => void
  caption: string
}) {
  return (
    // biome-ignore lint/a11y/noNoninteractiveTabindex: a region that scrolls must be reachable by keyboard
    <section className="overflow-x-auto rounded-xl border border-line bg-panel" aria-label={caption} tabIndex={0}>
      <table className="w-full border-collapse text-left">
        <thead>
          <tr className="border-b border-line text-xs text-soft">
            {columns.map(({ title, isNumber, isExtra }) => (
              <th key={title} scope="col" className={`px-4 py-2.5 font-medium ${toClass(isNumber, isExtra)}`}>
                {title}
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {rows.map((row) => (
            <tr
              key={keyOf(row)}
              className={`border-b border-line last:border-0 ${onOpen === undefined ? '' : 'cursor-pointer hover:bg-sunk'}`}
              {...(onOpen === undefined ? {} : { onClick: () => onOpen(row) })}
            >
              {columns.map(({ title, cell, isNumber, isExtra }) => (
                <td key={title} className={`px-4 py-2.5 align-middle ${toClass(isNumber, isExtra)}`}>
                  {cell(row)}
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

/** To the page after this one. */
export function More({ next, onMore }: { next: string | null; onMore: (cursor: string) => void }) {
  if (next === null) return null
  return (
    <div className="text-center">
      <button
        type="button"
        onClick={() => onMore(next)}
        className="rounded-lg px-4 py-2 font-medium text-brand hover:bg-sunk"
      >
        Older ones
      </button>
    </div>
  )
}

import type { ReactNode } from 'react'

/** Text of any length in a table cell. It wraps, and leaves room for the other columns of a wide table. */
export function LongText({ children, isCode = false }: { children: ReactNode; isCode?: boolean }) {
  const className = 'block max-w-xl [overflow-wrap:anywhere] @4xl:min-w-36'
  return isCode ? (
    <code className={`${className} font-mono text-xs leading-5`}>{children}</code>
  ) : (
    <span className={className}>{children}</span>
  )
}

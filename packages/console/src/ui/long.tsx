import type { ReactNode } from 'react'

/** A text of any length in a table: it takes several lines, but never leaves the others without room. */
export function Long({ children, isCode = false }: { children: ReactNode; isCode?: boolean }) {
  const className = 'block max-w-xl [overflow-wrap:anywhere] md:min-w-36'
  return isCode ? (
    <code className={`${className} font-mono text-xs leading-5`}>{children}</code>
  ) : (
    <span className={className}>{children}</span>
  )
}

import type { ButtonHTMLAttributes, ReactNode } from 'react'

type Variant = 'primary' | 'secondary' | 'ghost' | 'danger'

const variants: Record<Variant, string> = {
  primary: 'bg-brand text-on-brand hover:brightness-110 border-transparent shadow-xs',
  secondary: 'bg-panel text-ink hover:bg-sunk border-line shadow-xs',
  ghost: 'bg-transparent text-soft hover:bg-sunk hover:text-ink border-transparent',
  danger: 'bg-threat text-panel hover:brightness-110 border-transparent shadow-xs',
}

type Props = ButtonHTMLAttributes<HTMLButtonElement> & {
  variant?: Variant
  isBusy?: boolean
  /** Smaller, for the rows of a table or beside text. */
  isSmall?: boolean
  children: ReactNode
}

/** Classes of a button, also for links that look like one. */
export const buttonClass = (variant: Variant = 'secondary', isSmall = false) =>
  `inline-flex items-center justify-center gap-2 rounded-lg border ${isSmall ? 'px-2.5 py-0.5 text-xs leading-5' : 'px-3.5 py-1.5'} font-medium motion-safe:transition whitespace-nowrap disabled:opacity-55 ${variants[variant]}`

export function Button({
  variant = 'secondary',
  isBusy = false,
  isSmall = false,
  children,
  className = '',
  type = 'button',
  ...rest
}: Props) {
  return (
    <button
      type={type}
      {...rest}
      disabled={rest.disabled === true || isBusy}
      aria-busy={isBusy}
      className={`${buttonClass(variant, isSmall)} ${className}`}
    >
      {isBusy && <Spinner />}
      {children}
    </button>
  )
}

export function Spinner() {
  return (
    <svg viewBox="0 0 24 24" className="size-4 motion-safe:animate-spin" aria-hidden="true">
      <circle cx="12" cy="12" r="9" fill="none" stroke="currentColor" strokeWidth="3" opacity="0.25" />
      <path d="M21 12a9 9 0 0 0-9-9" fill="none" stroke="currentColor" strokeWidth="3" strokeLinecap="round" />
    </svg>
  )
}
